/*
 * net/traffic.c - what the system knows about a TCP connection.
 *
 * Apart from the rest of net/: linux/tcp.h has the whole struct, and cannot be included
 * beside netinet/tcp.h.
 */
#include <linux/tcp.h>
#include <netinet/in.h>

#include "net/net_internal.h"

void hr__conn_traffic(int fd, struct hr_net_traffic *ret_traffic)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_busy_time) + sizeof info.tcpi_busy_time)
        return;
    ret_traffic->delivered = info.tcpi_bytes_acked;
    ret_traffic->busy_ns = info.tcpi_busy_time * 1000;
}
