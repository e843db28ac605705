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
	controls  [inboxLength]coalescedControl
	read      func(fd uintptr) bool // try, bound once, so that receiving does not allocate

	call  multiCall
	count int // of headers that the last call filled
	err   syscall.Errno
}

// coalescedControl is the control message with the length of the segments of a coalesced run. The kernel gives an int; the last word is padding on 64 bits.
type coalescedControl struct {
	header  unix.Cmsghdr
	segment int32
	_       int32
}

var (
	coalescedLength = unix.CmsgLen(4)
	coalescedSpace  = unix.CmsgSpace(4)
)

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
	b.call = s.kernel.recvmmsg
	if err := s.kernel.raw.Read(b.read); err != nil {
		return err
	}
	if b.err != 0 {
		return b.err
	}
	for i := range b.headers[:b.count] {
		in.append(b.addresses[i].get(), i, int(b.headers[i].Len), b.segment(i))
	}
	return nil
}

// reset gives the kernel back the lengths that it changed in the last call.
func (b *inboxBatch) reset() {
	for i := range b.headers[:b.count] {
		header := &b.headers[i].Hdr
		header.Namelen = unix.SizeofSockaddrInet6
		header.SetControllen(coalescedSpace)
		header.Flags = 0
	}
	b.count = 0
}

// try receives what there is. It reports false where the poller shall wait for something.
func (b *inboxBatch) try(fd uintptr) bool {
	b.count, b.err = b.call(fd, b.headers)
	return b.err != unix.EAGAIN
}

// segment is the length of the datagrams that a message was coalesced of; 0 where it is a single one.
func (b *inboxBatch) segment(index int) int {
	control := &b.controls[index]
	if int(b.headers[index].Hdr.Controllen) < coalescedLength ||
		control.header.Level != unix.SOL_UDP || control.header.Type != unix.UDP_GRO {
		return 0
	}
	return int(control.segment)
}

// recvmmsg is the system call. On error it returns 0 as the number.
func recvmmsg(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	return multi(unix.SYS_RECVMMSG, fd, headers)
}

// multi makes one of the two calls that move many messages; their arguments are alike, but for a time limit when receiving, which is left out.
func multi(number, fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	n, _, err := unix.Syscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(headers))), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
