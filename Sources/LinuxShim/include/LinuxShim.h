#ifndef TARN_LINUX_SHIM_H
#define TARN_LINUX_SHIM_H
#endif
