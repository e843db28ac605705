package udp

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
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
	controls    [batchLength]sendControls
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

// control is a control message with data of up to 32 bits. The header makes its size a multiple of a word, as the
// kernel expects.
type control struct {
	header unix.Cmsghdr
	data   [4]byte
}

// sendControls has room for all control messages of one message: the segment length, the codepoint and the requested
// timestamps. Those present follow each other without gaps.
type sendControls [3]control

// The control messages. The run determines the data of the first three.
var (
	segmentControl = newControl(unix.SOL_UDP, unix.UDP_SEGMENT, 2, 0)
	tosControl     = newControl(unix.SOL_IP, unix.IP_TOS, 4, 0)
	classControl   = newControl(unix.SOL_IPV6, unix.IPV6_TCLASS, 4, 0)
	stampControl   = newControl(unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, 4, askedStamps)
)

// newControl returns a control message with data of a number of bytes.
func newControl(level, kind int32, bytes int, data uint32) control {
	c := control{header: unix.Cmsghdr{Level: level, Type: kind}}
	c.header.SetLen(unix.CmsgLen(bytes))
	binary.NativeEndian.PutUint32(c.data[:], data)
	return c
}

// set stores the control messages of a run, and returns their size in bytes.
func (c *sendControls) set(run *Message) int {
	n := 0
	if run.Count() > 1 {
		c[n] = segmentControl
		binary.NativeEndian.PutUint16(c[n].data[:], uint16(run.Segment))
		n++
	}
	if run.ECN != ecn.NotECT {
		// The kernel sends to a mapped address by IPv4.
		if ip := run.Peer.Addr(); ip.Is4() || ip.Is4In6() {
			c[n] = tosControl
		} else {
			c[n] = classControl
		}
		binary.NativeEndian.PutUint32(c[n].data[:], uint32(run.ECN))
		n++
	}
	if run.Stamped {
		c[n] = stampControl
		n++
	}
	return n * int(unsafe.Sizeof(control{}))
}

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
	header.SetControllen(b.controls[i].set(&b.runs[i]))
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

// borrow returns an empty batch for this socket.
func (s *Socket) borrow() *batch {
	b := batches.Get().(*batch)
	b.fd, b.call, b.calls, b.patience = s.kernel.fd, s.kernel.sendmmsg, 0, s.patience
	switch {
	case b.patience == 0:
		b.patience = math.MaxInt64
	case s.fullAt.Load() != 0 && s.Full(time.Now()):
		b.patience = 0
	}
	return b
}

// giveBack empties a batch and returns it to the pool.
func (b *batch) giveBack() {
	b.empty()
	batches.Put(b)
}

// sendBatches sends all messages, in segmented runs if segmented is set and possible.
func (s *Socket) sendBatches(messages []Message, segmented bool) error {
	b := s.borrow()
	defer b.giveBack()
	rest := cursor{messages: messages}
	for {
		s.fill(b, &rest, segmented && s.kernel.segmenting.Load())
		if b.count == 0 {
			return nil
		}
		for b.next < b.count {
			err := s.push(b)
			if err == nil && b.next < b.count {
				err = s.refused(b)
			}
			if err != nil {
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
		if run.ECN &= codepointMask; run.ECN != ecn.NotECT && !s.kernel.settingECN.Load() {
			run.ECN = ecn.NotECT
		}
		b.add(run, s.kernel.ipv6)
	}
}

// push sends until the batch is done, or until the kernel refuses the run at b.next with b.err. It drops runs for which
// there is no space.
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
	if err != nil {
		return s.unlessClosed(err)
	}
	if b.err == unix.EAGAIN {
		s.discard(b)
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
	var counts CodepointCounts
	for i := first; i < b.next; i++ {
		counts.count(&b.runs[i])
	}
	runs := uint64(b.next - first)
	if !s.kernel.segmented.Load() && counts.Sum() > runs {
		s.kernel.segmented.Store(true)
	}
	s.sent.add(&counts)
	s.runs.Add(runs)
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
//
// The request for timestamps and the codepoint may be the cause as well, but several errors have other causes, too,
// such as an invalid port. The socket therefore gives up a feature only if the kernel accepts the run without it.
func (s *Socket) refused(b *batch) error {
	run, cause := b.runs[b.next:b.next+1], b.err
	b.next++
	if run[0].Stamped {
		s.kernel.awaited.Add(-1)
	}
	if run[0].Stamped && !s.kernel.stamping.Load() || run[0].ECN != ecn.NotECT && !s.kernel.settingECN.Load() {
		// The feature was disabled after the run was added to the batch.
		return s.sendBatches(run, true)
	}
	if run[0].Count() > 1 && (cause == unix.EINVAL || cause == unix.EMSGSIZE) {
		return s.sendBatches(run, false)
	}
	simpler := run[0]
	if simpler.Stamped && stampRefused(cause) {
		simpler.Stamped = false
		if done, err := s.sendWithout(&s.kernel.stamping, simpler); done || err != nil {
			return err
		}
	}
	if simpler.ECN != ecn.NotECT && ecnRefused(cause) {
		simpler.ECN, simpler.Stamped = ecn.NotECT, false
		if done, err := s.sendWithout(&s.kernel.settingECN, simpler); done || err != nil {
			return err
		}
	}
	if run[0].Count() > 1 && (cause == unix.EIO || cause == unix.ENOPROTOOPT || cause == unix.EOPNOTSUPP) {
		if !s.kernel.segmented.Load() {
			s.kernel.segmenting.Store(false)
		}
		return s.sendBatches(run, false)
	}
	s.sendErrors.Add(uint64(run[0].Count()))
	return nil
}

// sendWithout sends a run from which a feature was removed, and disables the feature if the kernel accepts the run. It
// reports whether the run needs no further attempt: it was accepted, or dropped because there was no space.
func (s *Socket) sendWithout(feature *atomic.Bool, run Message) (done bool, err error) {
	b := s.borrow()
	defer b.giveBack()
	s.fill(b, &cursor{messages: []Message{run}}, true)
	if err := s.push(b); err != nil {
		return false, err
	}
	if b.err == 0 {
		feature.Store(false)
	}
	return b.next == b.count, nil
}

// ecnRefused reports whether an error may be caused by the codepoint. Linux has EINVAL for unknown control messages.
func ecnRefused(err syscall.Errno) bool {
	return err == unix.EINVAL || err == unix.ENOPROTOOPT || err == unix.EOPNOTSUPP
}

// sendmmsg is the system call. On error it returns 0 as the number.
func sendmmsg(fd uintptr, headers []unix.Mmsghdr) (int, syscall.Errno) {
	return multi(unix.SYS_SENDMMSG, fd, headers)
}
