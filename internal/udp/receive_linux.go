package udp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inboxLength is the number of messages that one call receives. Coalesced, 16 hold up to 1,024 datagrams. From as many
// peers with one datagram each, the call itself (about 300 ns) costs each of them 20 ns, and more buffers would cost
// every client memory.
const inboxLength = 16

// inboxBatch is the memory that recvmmsg fills. Its parts never move, so the headers are set up once.
type inboxBatch struct {
	headers   []unix.Mmsghdr // nil until the first call
	vectors   [inboxLength]unix.Iovec
	addresses [inboxLength]socketAddress
	controls  [inboxLength]controlRoom
	departed  departedBatch
	read      func(uintptr) bool // try, bound once, so that receiving does not allocate

	fd    uintptr
	call  multiCall
	count int // headers filled by the last call
	err   syscall.Errno
}

// controlSpace is the size of the control messages of one message, in bytes. With words of 64 bits those of a received
// run have 112: 24 for the segment length, 24 for the codepoint, and 64 for three times of day. Those of a sent
// datagram have 152 at most: 64 for the times, 64 for an error with an IPv6 address, and 24 for the codepoint, which
// Linux 6 does not report with them.
const controlSpace = 192

// controlRoom is aligned memory for control messages.
type controlRoom [controlSpace / 8]uint64

// prepare allocates the memory and sets up the headers, once.
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
		m := in.append(b.addresses[i].get(), i, int(b.headers[i].Len), facts.segment)
		m.ECN, m.Arrived = facts.ecn, facts.stamp
	}
	return nil
}

// reset restores the lengths that the kernel changed in the last call.
func (b *inboxBatch) reset() {
	for i := range b.headers[:b.count] {
		header := &b.headers[i].Hdr
		header.Namelen = unix.SizeofSockaddrInet6
		header.SetControllen(controlSpace)
		header.Flags = 0
	}
	b.count = 0
}

// try receives without waiting. It returns false if the poller has to wait.
func (b *inboxBatch) try(uintptr) bool {
	b.count, b.err = b.call(b.fd, b.headers)
	b.departed.read(b.fd)
	return b.err != unix.EAGAIN || b.departed.count > 0
}

// recvmmsg is the system call. On error it returns 0 as the number.
func recvmmsg(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	return multi(unix.SYS_RECVMMSG, fd, headers)
}

// multi makes one of the two calls that transfer many messages; their arguments are the same, except for a time limit
// when receiving, which is not used.
//
// Neither call waits for the network, so they are made without informing Go's scheduler. Otherwise the scheduler would
// wake its system monitor, which then checks every 20 µs for a while whether the call has returned, and takes a sixth
// of the time of a server. The disadvantage is that stopping all goroutines, as the garbage collector does twice, has
// to wait for the call.
func multi(number, fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	n, _, err := unix.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(headers))), uintptr(len(headers)),
		unix.MSG_DONTWAIT, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
