package udp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inboxLength is how many messages one call receives. Coalesced, 16 hold up to 1,024 datagrams; from as many peers with one datagram each, the call itself
// (some 300 ns) costs each of them 20 ns, and more buffers would cost every client memory.
const inboxLength = 16

// inboxBatch is what recvmmsg fills. Everything in it keeps its place, so that the headers point to it once and for all.
type inboxBatch struct {
	headers   []unix.Mmsghdr // nil until the first call
	vectors   [inboxLength]unix.Iovec
	addresses [inboxLength]socketAddress
	controls  [inboxLength]controlRoom
	departed  departedBatch
	read      func(uintptr) bool // try, bound once, so that receiving does not allocate

	fd    uintptr
	call  multiCall
	count int // of headers that the last call filled
	err   syscall.Errno
}

// controlSpace holds the control messages of one message: the length of the segments of a coalesced run, which takes 24 bytes, and three times of day with 64; those of a
// datagram that was sent have an error of 48 bytes beside them.
const controlSpace = 192

// controlRoom is room for control messages, aligned as they are.
type controlRoom [controlSpace / 8]uint64

// prepare allocates and points the headers to everything, once.
func (in *Inbox) prepare() {
	b := &in.batch
	if b.headers != nil {
		return
	}
	in.reserve(inboxLength)
	in.messages = make([]Message, 0, inboxLength)
	b.headers = make([]unix.Mmsghdr, inboxLength)
	b.read = b.try
	for i := range b.headers {
		b.vectors[i].Base = unsafe.SliceData(in.buffer(i))
		b.vectors[i].SetLen(bufferSize)
		header := &b.headers[i].Hdr
		header.Name = (*byte)(unsafe.Pointer(&b.addresses[i]))
		header.Iov = &b.vectors[i]
		header.SetIovlen(1)
		header.Control = (*byte)(unsafe.Pointer(&b.controls[i]))
	}
	b.count = inboxLength
}

func (s *Socket) receive(in *Inbox) error {
	if !s.kernel.receiving {
		return s.receivePlain(in)
	}
	in.prepare()
	b := &in.batch
	b.reset()
	b.fd, b.call, b.departed.awaited = s.kernel.fd, s.kernel.recvmmsg, &s.kernel.awaited
	if err := s.kernel.raw.Read(b.read); err != nil {
		return s.unlessClosed(err)
	}
	in.departures = b.departed.take(in.departures)
	if b.err == unix.EAGAIN {
		return nil
	}
	if b.err != 0 {
		return b.err
	}
	for i := range b.headers[:b.count] {
		facts := parseControls(b.controls[i].bytes(int(b.headers[i].Hdr.Controllen)))
		in.append(b.addresses[i].get(), i, int(b.headers[i].Len), facts.segment)
		in.messages[len(in.messages)-1].Arrived = facts.stamp
	}
	return nil
}

// reset gives the kernel back the lengths that it changed in the last call.
func (b *inboxBatch) reset() {
	for i := range b.headers[:b.count] {
		header := &b.headers[i].Hdr
		header.Namelen = unix.SizeofSockaddrInet6
		header.SetControllen(controlSpace)
		header.Flags = 0
	}
	b.count = 0
}

// try receives what there is. It reports false where the poller shall wait for something.
func (b *inboxBatch) try(uintptr) bool {
	b.count, b.err = b.call(b.fd, b.headers)
	b.departed.read(b.fd)
	return b.err != unix.EAGAIN || b.departed.count > 0
}

// recvmmsg is the system call. On error it returns 0 as the number.
func recvmmsg(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	return multi(unix.SYS_RECVMMSG, fd, headers)
}

// multi makes one of the two calls that move many messages; their arguments are alike, but for a time limit when receiving, which is left out.
//
// Neither waits for the network, so Go's scheduler is not told of them: told, it wakes its system monitor, which then looks every 20 µs for a while whether the call has returned, and takes a sixth
// of the time of a server. But what stops all goroutines, as the collector does twice, has to wait for the call.
func multi(number, fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	n, _, err := unix.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(headers))), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
