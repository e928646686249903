#include "CurlShim.h"

#include <stddef.h>
#include <sys/ioctl.h>

// Not netinet/tcp.h, which ends before tcpi_min_rtt.
#include <linux/tcp.h>

// TCP_ESTABLISHED, which only the other header names.
static const int established = 1;

long tarn_curl_round_trip(curl_socket_t number) {
  struct tcp_info info = {0};
  socklen_t size = sizeof(info);
  if (getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_state != established) return -1;
  // An older kernel fills less of it.
  return size >= offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt) ? (long)info.tcpi_min_rtt : -1;
}

long long tarn_curl_bytes_read(curl_socket_t number) {
  struct tcp_info info = {0};
  socklen_t size = sizeof(info);
  int waiting = 0;
  if (getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
  if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) return -1;
  if (ioctl(number, FIONREAD, &waiting) != 0) return -1;
  long long received = (long long)info.tcpi_bytes_received;
  return received > waiting ? received - waiting : 0;
}
