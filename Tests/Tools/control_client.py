#!/usr/bin/env python3
"""A foreign client of the control socket: one request with http.client, as another user when asked (root only).

    control_client.py [--uid N] [--gid N] [--groups N,N] SOCKET METHOD TARGET [BODY]

Prints the status on the first line and the body after it; ends with 3 and the error's name when it cannot connect.
"""
import argparse
import errno
import http.client
import os
import socket
import sys


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--groups", default="")
    parser.add_argument("socket")
    parser.add_argument("method")
    parser.add_argument("target")
    parser.add_argument("body", nargs="?")
    options = parser.parse_args()
    if options.uid is not None:
        os.setgroups([int(number) for number in options.groups.split(",") if number])
        os.setresgid(options.gid, options.gid, options.gid)
        os.setresuid(options.uid, options.uid, options.uid)
    connection = UnixConnection(options.socket)
    try:
        connection.request(options.method, options.target, body=options.body)
    except OSError as error:
        print(errno.errorcode.get(error.errno, str(error)))
        return 3
    answer = connection.getresponse()
    print(answer.status)
    sys.stdout.write(answer.read().decode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
