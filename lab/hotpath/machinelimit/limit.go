// Package machinelimit measures the least cost of a packet on this machine: sealing, sending and receiving in a tight
// loop.
package machinelimit

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

// Limit is the machine's least cost for one packet of 1,200 bytes on one core: user and system time on loopback. The
// cost of sending includes the network's work up to the receiving socket. Only the receiver of Coalesced accepts
// UDP_GRO. Times are in microseconds per packet.
type Limit struct {
	// SealSegmented is AES-128-GCM and sending in runs of 43 (UDP_SEGMENT), to a socket that counts and drops the
	// packets.
	SealSegmented float64 `json:"seal_segmented_us_per_packet"`
	// PlainSend is one call per packet, without encryption.
	PlainSend float64 `json:"plain_send_us_per_packet"`
	// Receive is one call per 64 packets (recvmmsg), and decryption.
	Receive float64 `json:"receive_us_per_packet"`
	// Coalesced is receiving complete runs of 43 (UDP_GRO), and decryption.
	Coalesced float64 `json:"receive_coalesced_us_per_packet"`
	// MachineBusy is the share of all cores' time that was not idle during the measurement.
	MachineBusy float64 `json:"machine_busy"`
}

// Ceiling returns the least cost per sent packet if each received packet is sent to this number of receivers.
func (l *Limit) Ceiling(receivers int) float64 {
	if receivers == 0 {
		return l.SealSegmented
	}
	return l.SealSegmented + l.Receive/float64(receivers)
}

// errLimit reports that the limit cannot be measured on this machine.
var errLimit = errors.New("measure the machine's limit")

const (
	// plainBytes is the size of an RTP packet before encryption; tagBytes is the tag added by AES-GCM (RFC 7714
	// section 5.2).
	plainBytes  = 1200
	tagBytes    = 16
	sealedBytes = plainBytes + tagBytes
	// rounds is the number of rounds. A round measures all kinds in turn, and the median of each kind counts.
	rounds = 5
	// sendRound and receiveRound are the packets of each round, some 10 ms each. A receive round must fit the socket's
	// buffer of 16 MB at some 2,300 bytes per packet.
	sendRound    = 240 * mediasocket.MaxRun
	receiveRound = 100 * mediasocket.MaxRun
)

// Measure measures the machine's limit. The error wraps errors.ErrUnsupported if the system does not support
// segmentation.
func Measure(ctx context.Context) (*Limit, error) {
	bench, err := newBench()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLimit, err)
	}
	defer bench.close()
	before, err := lab.ReadMachineTime()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLimit, err)
	}
	kinds := []func() (time.Duration, int, error){bench.sealSegmented, bench.plainSend, bench.receive, bench.coalesced}
	costs := make([][]float64, len(kinds))
	// The first round warms up.
	for round := range rounds + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, kind := range kinds {
			took, packets, err := kind()
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errLimit, err)
			}
			if round > 0 {
				costs[i] = append(costs[i], lab.Microseconds(took)/float64(packets))
			}
		}
	}
	after, err := lab.ReadMachineTime()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLimit, err)
	}
	return &Limit{
		SealSegmented: lab.Median(costs[0]), PlainSend: lab.Median(costs[1]), Receive: lab.Median(costs[2]),
		Coalesced:   lab.Median(costs[3]),
		MachineBusy: after.BusySince(before),
	}, nil
}

// sealer encrypts packets like SRTP with AES-128-GCM (RFC 7714). Each packet has its own nonce.
type sealer struct {
	aead  cipher.AEAD
	nonce [12]byte
	index uint32
	plain [plainBytes]byte
}

func newSealer() (*sealer, error) {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	s := &sealer{aead: aead}
	s.plain[0] = 2 << 6
	return s, nil
}

// seal appends one encrypted packet.
func (s *sealer) seal(dst []byte) []byte {
	s.index++
	binary.BigEndian.PutUint16(s.plain[2:], uint16(s.index))
	binary.BigEndian.PutUint32(s.nonce[8:], s.index)
	dst = append(dst, s.plain[:mediasocket.RTPHeader]...)
	return s.aead.Seal(dst, s.nonce[:], s.plain[mediasocket.RTPHeader:], s.plain[:mediasocket.RTPHeader])
}

// open decrypts a packet in place. The nonce is derived from the sequence number, which equals the index used by seal
// for the first 65,536 packets.
func (s *sealer) open(packet []byte) error {
	binary.BigEndian.PutUint32(s.nonce[8:], uint32(binary.BigEndian.Uint16(packet[2:])))
	header, sealed := packet[:mediasocket.RTPHeader], packet[mediasocket.RTPHeader:]
	_, err := s.aead.Open(sealed[:0], s.nonce[:], sealed, header)
	return err
}

// WriteJSON writes the limit as one JSON object.
func (l *Limit) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(l)
}

// WriteText writes the limit as a table.
func (l *Limit) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "seal and segmented send  %.3f µs\nplain send               %.3f µs\n"+
		"receive and decrypt      %.3f µs\nreceive in runs          %.3f µs\nmachine busy             %.1f %%\n",
		l.SealSegmented, l.PlainSend, l.Receive, l.Coalesced, 100*l.MachineBusy)
	return err
}
