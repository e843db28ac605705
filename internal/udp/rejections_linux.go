package udp

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Places in a datagram as the kernel shows it to a socket's filter, which begins at the UDP header (RFC 768), and in the
// IP header in front (RFC 791, RFC 8200).
const (
	filterPort, filterPayload    = 0, 8
	filterVersion                = networkHeader
	filterSource4, filterSource6 = networkHeader + 12, networkHeader + 8
	version4, version6           = 4, 6
	filterAccepts, filterRejects = 0xffffffff, 0
)

// reject gives the socket a filter of classic BPF (SO_ATTACH_FILTER), or takes its filter away if nothing is rejected.
func (s *Socket) reject(rejections []Rejection) error {
	if s.kernel.raw == nil {
		return errors.ErrUnsupported
	}
	if len(rejections) == 0 {
		err := setInt(&s.kernel, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	program := rejecting(rejections)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failure error
	err := s.kernel.Control(func(fd uintptr) {
		failure = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	})
	return errors.Join(err, failure)
}

// loading is an instruction that loads from a datagram.
func loading(size uint16, at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
}

// rejecting makes a filter's program: media is accepted at once, then each rejection is a rule that ends the program or
// goes on at the next.
func rejecting(rejections []Rejection) []unix.SockFilter {
	program := []unix.SockFilter{
		loading(unix.BPF_B, filterPayload),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: mediaBytes, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: filterAccepts},
	}
	for _, r := range rejections {
		program = append(program, rule(r)...)
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: filterAccepts})
}

// rule drops the datagrams of one rejection, and goes on behind its last instruction for all others.
func rule(r Rejection) (program []unix.SockFilter) {
	// holds goes on at the end unless what was loaded compares as told.
	holds := func(comparison uint16, k uint32) {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k})
	}
	address, version, source := r.Peer.Addr().Unmap(), uint32(version4), uint32(filterSource4)
	if address.Is6() {
		version, source = version6, filterSource6
	}
	program = append(program, loading(unix.BPF_B, filterVersion), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: 4})
	holds(unix.BPF_JEQ, version)
	for words := address.AsSlice(); len(words) > 0; words = words[4:] {
		program = append(program, loading(unix.BPF_W, source))
		holds(unix.BPF_JEQ, binary.BigEndian.Uint32(words))
		source += 4
	}
	program = append(program, loading(unix.BPF_H, filterPort))
	holds(unix.BPF_JEQ, uint32(r.Peer.Port()))
	program = append(program, loading(unix.BPF_B, filterPayload))
	holds(unix.BPF_JGE, uint32(r.First))
	program = append(program,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: uint32(r.Last), Jt: 1},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: filterRejects})
	const class, jump = 7, unix.BPF_JMP
	for i := range program[:len(program)-2] {
		if program[i].Code&class == jump {
			program[i].Jf = uint8(len(program) - i - 1)
		}
	}
	return program
}
