#include "LinuxShim.h"
