#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A link before a server: counts bytes, and makes loopback slower, longer or broken.

    with Link(server_port, rate=12.5e6, rtt=0.04, cut_after=2_000_000) as link:
        ... connect to link.port ...
        link.up, link.down      bytes towards the server and back, on all connections

With `quiet` the server hears nothing of a cut, as where a cable is pulled. `rate` is bytes a second, for each way, shared by all connections, `rate_each` that of one
connection, as where a server's window is small for a long way. After `cut_after` bytes in all every connection is
reset and the link refuses new ones until `mend()`; a link that is mended is not cut again.
"""
import asyncio
import socket
import struct
import threading

QUEUE_PIECES = 64
PIECE_BYTES = 64 << 10
BUFFER_SECONDS = 0.1


class Link:
    def __init__(self, target_port, rate=None, rtt=0.0, cut_after=None, quiet=False, rate_each=None):
        self.target_port, self.rate, self.rtt, self.cut_after = target_port, rate, rtt, cut_after
        self.quiet, self.rate_each = quiet, rate_each
        self.connections = 0
        self.up = self.down = 0
        self.cuts = 0
        self.broken = False
        self.port = 0
        self._slot = {"up": 0.0, "down": 0.0}
        self._writers = set()
        self._held = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def mend(self):
        self.cut_after, self.broken = None, False

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):  # transports close one turn of the loop later
            await asyncio.sleep(0)

    async def _connection(self, reader, writer):
        if self.broken:
            self._reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            self._reset(writer)
            return
        self.connections += 1
        self._writers |= {writer} if self.quiet else {writer, far_writer}
        ways = [asyncio.ensure_future(way) for way in (self._way("up", reader, far_writer), self._way("down", far_reader, writer))]
        try:
            await asyncio.gather(*ways)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for way in ways:
                way.cancel()
            self._writers -= {writer, far_writer}
            writer.close()
            if self.quiet and self.broken:
                self._held.append((far_reader, far_writer))
            else:
                far_writer.close()

    async def _way(self, name, reader, writer):
        queue = asyncio.Queue(QUEUE_PIECES)
        sender = asyncio.ensure_future(self._send(queue, writer))
        own_slot = 0.0
        try:
            while True:
                data = await reader.read(PIECE_BYTES)
                now = due = self._loop.time()
                if self.rate:
                    due = self._slot[name] = max(self._slot[name], now) + len(data) / self.rate
                if self.rate_each:
                    own_slot = max(own_slot, now) + len(data) / self.rate_each
                    due = max(due, own_slot)
                setattr(self, name, getattr(self, name) + len(data))
                if self.cut_after is not None and self.up + self.down >= self.cut_after:
                    self._cut()
                    return
                await queue.put((due + self.rtt / 2, data))
                # A link holds no more than it is long: a sender feels its rate.
                ahead = due - now - max(self.rtt, BUFFER_SECONDS)
                if ahead > 0:
                    await asyncio.sleep(ahead)
                if not data:
                    await sender
                    return
        finally:
            sender.cancel()

    async def _send(self, queue, writer):
        while True:
            due, data = await queue.get()
            wait = due - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if not data:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    def _cut(self):
        if self.broken:
            return
        self.broken = True
        self.cuts += 1
        for writer in list(self._writers):
            self._reset(writer)

    @staticmethod
    def _reset(writer):
        """Drops the connection as a broken path does: a reset, no orderly end."""
        sock = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
