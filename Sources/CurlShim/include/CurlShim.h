#ifndef TARN_CURL_SHIM_H
#define TARN_CURL_SHIM_H
#include <curl/curl.h>
#endif
