package udp

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Offsets in a datagram as a socket's filter sees it, beginning at the UDP header (RFC 768), and in the IP header
// before it (RFC 791, RFC 8200).
const (
	filterPort, filterPayload    = 0, 8
	filterVersion                = networkHeader
	filterSource4, filterSource6 = networkHeader + 12, networkHeader + 8
	version4, version6           = 4, 6
	filterAccepts, filterRejects = 0xffffffff, 0
)

// reject attaches a classic BPF filter to the socket (SO_ATTACH_FILTER), or detaches the filter if nothing is rejected.
// The kernel bounds the memory of filters (net.core.optmem_max): if it is insufficient, half of the sources are
// ignored.
func (s *Socket) reject(rejections Rejections) error {
	if s.kernel.raw == nil {
		return errors.ErrUnsupported
	}
	for len(rejections.Sources) > 0 {
		err := s.attach(rejecting(rejections))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ENOMEM) {
			return errors.Join(err, s.detach())
		}
		rejections.Sources = rejections.Sources[:len(rejections.Sources)/2]
	}
	return s.detach()
}

// attach replaces the socket's filter.
func (s *Socket) attach(program []unix.SockFilter) error {
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var failure error
	err := s.kernel.Control(func(fd uintptr) {
		failure = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	})
	return errors.Join(err, failure)
}

// detach removes the socket's filter, if there is one.
func (s *Socket) detach() error {
	err := setInt(&s.kernel, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// loading returns an instruction that loads from a datagram.
func loading(size uint16, at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
}

// jump returns an instruction that compares, and skips holds or fails instructions depending on the result.
func jump(comparison uint16, k uint32, holds, fails uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, Jt: holds, Jf: fails, K: k}
}

// computing returns an instruction that computes with the loaded value.
func computing(operation uint16, k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | operation | unix.BPF_K, K: k}
}

func returning(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

// rejecting returns a filter program: a datagram of another kind is accepted at once, then each source is a rule that
// drops the datagram or continues at the next.
func rejecting(rejections Rejections) []unix.SockFilter {
	program := []unix.SockFilter{loading(unix.BPF_B, filterPayload)}
	for i, kind := range rejections.Kinds {
		// Each kind has two instructions, and the last is followed by the instruction that accepts.
		rest := uint8(2 * (len(rejections.Kinds) - i - 1))
		program = append(program,
			jump(unix.BPF_JGE, uint32(kind.First), 0, 1), jump(unix.BPF_JGT, uint32(kind.Last), 0, rest+1))
	}
	program = append(program, returning(filterAccepts))
	for _, source := range rejections.Sources {
		if len(source.Except) > MaxExcept || !source.Prefix.IsValid() {
			continue
		}
		if rule := rule(source); len(program)+len(rule) < maxInstructions {
			program = append(program, rule...)
		}
	}
	return append(program, returning(filterAccepts))
}

// rule drops the datagrams of one source, and continues after its last instruction for all others.
func rule(source RejectedSource) (program []unix.SockFilter) {
	// ends are the instructions that continue after the rule if they do not hold, passes those that do so if they hold.
	var ends, passes []int
	holds := func(k uint32) {
		ends = append(ends, len(program))
		program = append(program, jump(unix.BPF_JEQ, k, 0, 0))
	}
	address, bits := source.Prefix.Addr(), source.Prefix.Bits()
	version, at := uint32(version4), uint32(filterSource4)
	if address.Is6() {
		version, at = version6, filterSource6
	}
	program = append(program, loading(unix.BPF_B, filterVersion), computing(unix.BPF_RSH, 4))
	holds(version)
	for words := source.Prefix.Masked().Addr().AsSlice(); len(words) > 0 && bits > 0; words = words[4:] {
		program = append(program, loading(unix.BPF_W, at))
		if bits < 32 {
			program = append(program, computing(unix.BPF_AND, ^uint32(0)<<(32-bits)))
		}
		holds(binary.BigEndian.Uint32(words))
		at, bits = at+4, bits-32
	}
	if source.Port != 0 || len(source.Except) > 0 {
		program = append(program, loading(unix.BPF_H, filterPort))
	}
	if source.Port != 0 {
		holds(uint32(source.Port))
	}
	for _, port := range source.Except {
		passes = append(passes, len(program))
		program = append(program, jump(unix.BPF_JEQ, uint32(port), 0, 0))
	}
	program = append(program, returning(filterRejects))
	for _, i := range ends {
		program[i].Jf = uint8(len(program) - i - 1)
	}
	for _, i := range passes {
		program[i].Jt = uint8(len(program) - i - 1)
	}
	return program
}
