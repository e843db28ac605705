package udp

import (
	"math"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batchLength is the number of runs that are prepared together.
	batchLength = 128
)

// roomInterval bounds one wait for space in the send buffer. The kernel reports space only when half of the buffer is
// free, but accepts packets earlier.
const roomInterval = time.Millisecond

// batch is the memory for sendmmsg. Its parts never move, so the headers are set up once.
type batch struct {
	runs        [batchLength]Message
	headers     [batchLength]unix.Mmsghdr
	vectors     [batchLength]unix.Iovec
	addresses   [batchLength]socketAddress
	controls    [batchLength]sendControl
	count, next int // runs in the batch, and the first of them that is not done
	// try and retry are bound once, so that sending does not allocate.
	try, retry func(uintptr)
	room       [1]unix.PollFd
	// patience is the remaining time for which the batch may wait for space.
	patience time.Duration

	fd    uintptr
	call  multiCall
	calls int // calls that sent something
	err   syscall.Errno
}

// segmentControl is the control message with the segment length of a run. Its data is 16 bits, padded to a word.
type segmentControl struct {
	header  unix.Cmsghdr
	segment uint16
	_       [6]byte
}

// sendControl has the control messages of one message: the segment length, and the requested timestamps. Each may be
// sent alone.
type sendControl struct {
	segment segmentControl
	stamp   stampControl
}

var (
	segmentLength = unix.CmsgLen(2)
	segmentSpace  = unix.CmsgSpace(2)
)

var batches = sync.Pool{New: func() any { return newBatch() }}

func newBatch() *batch {
	b := new(batch)
	b.try = func(uintptr) { b.send() }
	b.retry = func(uintptr) {
		b.await()
		b.send()
	}
	for i := range b.headers {
		header := &b.headers[i].Hdr
		header.Name = (*byte)(unsafe.Pointer(&b.addresses[i]))
		header.Iov = &b.vectors[i]
		header.SetIovlen(1)
		header.Control = (*byte)(unsafe.Pointer(&b.controls[i]))
		control := &b.controls[i].segment.header
		control.Level, control.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		control.SetLen(segmentLength)
		stamp := &b.controls[i].stamp
		stamp.header.Level, stamp.header.Type, stamp.flags = unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, askedStamps
		stamp.header.SetLen(stampLength)
	}
	return b
}

// add appends a run.
func (b *batch) add(run Message, ipv6 bool) {
	i := b.count
	b.count++
	b.runs[i] = run
	b.vectors[i].Base = unsafe.SliceData(run.Data)
	b.vectors[i].SetLen(len(run.Data))
	header := &b.headers[i].Hdr
	header.Namelen = b.addresses[i].set(run.Peer, ipv6)
	control, space := unsafe.Pointer(&b.controls[i]), 0
	if run.Count() > 1 {
		b.controls[i].segment.segment = uint16(run.Segment)
		space = segmentSpace
	} else if run.Stamped {
		control = unsafe.Pointer(&b.controls[i].stamp)
	}
	if run.Stamped {
		space += stampSpace
	}
	header.Control = (*byte)(control)
	header.SetControllen(space)
}

// empty removes all runs, and the references to the callers' memory.
func (b *batch) empty() {
	clear(b.runs[:b.count])
	clear(b.vectors[:b.count])
	b.count, b.next = 0, 0
}

// send sends from the first run that is not done, until all are sent or one is refused.
func (b *batch) send() {
	b.err = 0
	for b.next < b.count {
		sent, err := b.call(b.fd, b.headers[b.next:min(b.count, b.next+callLength)])
		switch err {
		case 0:
			b.next += sent
			b.calls++
		case unix.EINTR:
		default:
			b.err = err
			return
		}
	}
}

// await waits for space in the send buffer, at most for roomInterval and the remaining patience. A pending socket error
// ends the poll at once.
func (b *batch) await() {
	b.room[0] = unix.PollFd{Fd: int32(b.fd), Events: unix.POLLOUT}
	n, err := unix.Poll(b.room[:], int(min(b.patience, roomInterval).Milliseconds()))
	if err != nil || n > 0 && b.room[0].Revents&unix.POLLOUT == 0 {
		time.Sleep(roomInterval / 10)
	}
}

func (s *Socket) send(messages []Message) error {
	if !s.kernel.sending {
		return s.sendPlain(messages)
	}
	return s.sendBatches(messages, true)
}

// sendBatches sends all messages, in segmented runs if segmented is set and possible.
func (s *Socket) sendBatches(messages []Message, segmented bool) error {
	b := batches.Get().(*batch)
	b.fd, b.call, b.calls, b.patience = s.kernel.fd, s.kernel.sendmmsg, 0, s.patience
	switch {
	case b.patience == 0:
		b.patience = math.MaxInt64
	case s.fullAt.Load() != 0 && s.Full(time.Now()):
		b.patience = 0
	}
	defer func() {
		b.empty()
		batches.Put(b)
	}()
	rest := cursor{messages: messages}
	for {
		s.fill(b, &rest, segmented && s.kernel.segmenting.Load())
		if b.count == 0 {
			return nil
		}
		for b.next < b.count {
			if err := s.push(b); err != nil {
				return err
			}
		}
		b.empty()
	}
}

// fill adds as many runs as fit.
func (s *Socket) fill(b *batch, rest *cursor, segmented bool) {
	for b.count < batchLength {
		run, ok := rest.next(segmented)
		if !ok {
			return
		}
		if !run.Peer.IsValid() {
			s.sendErrors.Add(uint64(run.Count()))
			continue
		}
		if run.Stamped = run.Stamped && s.kernel.stamping.Load() && s.kernel.awaited.Load() < maxAwaited; run.Stamped {
			s.kernel.awaited.Add(1)
		}
		b.add(run, s.kernel.ipv6)
	}
}

// push sends until the batch is done, or until one run is refused or finds no space, and handles that run.
//
// It does not take the descriptor's write lock, under which package net makes its calls: the kernel sends datagrams of
// several callers at once, so writers on several cores do not wait for each other.
func (s *Socket) push(b *batch) error {
	first := b.next
	err := s.kernel.raw.Control(b.try)
	for err == nil && b.err == unix.EAGAIN && b.patience > 0 {
		asked := time.Now()
		err = s.kernel.raw.Control(b.retry)
		b.patience -= time.Since(asked)
	}
	s.countSent(b, first)
	if err == nil && b.err == unix.EAGAIN {
		s.discard(b)
		return nil
	}
	if err != nil {
		return s.unlessClosed(err)
	}
	if b.err != 0 {
		return s.refused(b)
	}
	return nil
}

// discard drops the rest of the batch, for which the send buffer has no space.
func (s *Socket) discard(b *batch) {
	datagrams := 0
	for _, run := range b.runs[b.next:b.count] {
		datagrams += run.Count()
	}
	b.next = b.count
	s.countSendDrops(datagrams)
	s.fullAt.Store(time.Now().UnixNano())
}

// countSent counts the runs that were done since first.
func (s *Socket) countSent(b *batch, first int) {
	if b.next == first {
		return
	}
	datagrams := 0
	for i := first; i < b.next; i++ {
		datagrams += b.runs[i].Count()
	}
	runs := b.next - first
	if datagrams > runs && !s.kernel.segmented.Load() {
		s.kernel.segmented.Store(true)
	}
	s.sent.Add(uint64(datagrams))
	s.runs.Add(uint64(runs))
	s.sends.Add(uint64(b.calls))
	b.calls = 0
}

// refused handles the run at b.next, which the kernel has refused, and skips it. Errors of sendmmsg always concern the
// first message of the call.
//
// The datagrams of a segmented run are sent singly if the error may be caused by segmenting. EINVAL and EMSGSIZE are,
// if a segment exceeds the path MTU to this peer: the kernel can still fragment a single datagram. This concerns one
// peer; each of its runs costs one failed call. EIO (a device or an IPsec route without checksum offload), ENOPROTOOPT
// and EOPNOTSUPP concern the system: if segmenting has never worked on this socket, it is disabled. If it has worked,
// such an error concerns the route to one peer, and other peers keep their runs.
func (s *Socket) refused(b *batch) error {
	run, err := b.runs[b.next:b.next+1], b.err
	b.next++
	if run[0].Stamped && stampRefused(err) {
		s.kernel.stamping.Store(false)
		run[0].Stamped = false
		return s.sendBatches(run, s.kernel.segmenting.Load())
	}
	if run[0].Count() > 1 {
		switch err {
		case unix.EIO, unix.ENOPROTOOPT, unix.EOPNOTSUPP:
			if !s.kernel.segmented.Load() {
				s.kernel.segmenting.Store(false)
			}
			return s.sendBatches(run, false)
		case unix.EINVAL, unix.EMSGSIZE:
			return s.sendBatches(run, false)
		}
	}
	s.sendErrors.Add(uint64(run[0].Count()))
	return nil
}

// sendmmsg is the system call. On error it returns 0 as the number.
func sendmmsg(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	return multi(unix.SYS_SENDMMSG, fd, headers)
}
