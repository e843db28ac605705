package hotpath

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// udpHeader stands before the payload in what a socket's filter sees.
	udpHeader = 8
	// surelyMedia is the length of a datagram that only media have once a receiver is connected: fragments have 1,200 bytes, the server's reports of a
	// few slots some hundred. A filter that looks into a packet costs the sender 0.1 µs on loopback, one that looks at its length nothing that shows.
	surelyMedia = 1000
)

// countMedia makes a socket drop all RTP before it is queued, and count it as dropped. A server on the same host pays for queueing each packet, for memory that another core
// frees, and for waking the reader, which no receiver on a network costs it; and the readers would need the cores that the server is measured on.
func countMedia(conn syscall.Conn) error {
	// RTP begins with 128 to 191 (RFC 7983), and its second byte is not that of RTCP, 192 to 223 (RFC 5761 section 4).
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_LEN},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: udpHeader + surelyMedia, Jt: 7},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: udpHeader},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xc0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x80, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: udpHeader + 1},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 192, Jf: 2},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 224, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 65535},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("count media at a socket: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("count media at a socket: %w", err)
	}
	return nil
}
