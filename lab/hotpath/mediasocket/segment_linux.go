package mediasocket

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SegmentControl returns the control message that makes the kernel cut a datagram into packets of a size (UDP_SEGMENT).
// SegmentControl reuses the message's memory.
func SegmentControl(message []byte, size int) []byte {
	if message == nil {
		message = make([]byte, unix.CmsgSpace(2))
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&message[0]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(message[unix.CmsgLen(0):], uint16(size))
	return message
}

// sendRun sends the run as one segmented datagram.
func (s *Socket) sendRun() error {
	if s.packets == 1 {
		return s.sendSingly()
	}
	s.control = SegmentControl(s.control, s.size)
	_, _, err := s.WriteMsgUDPAddrPort(s.run, s.control, s.to)
	return err
}
