package hotpath

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
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
	return l.SealSegmented + ratio(l.Receive, float64(receivers))
}

// errLimit reports that the limit cannot be measured on this machine.
var errLimit = errors.New("measure the machine's limit")

const (
	// limitPacket is the size of an RTP packet before encryption; tagBytes is the tag added by AES-GCM (RFC 7714
	// section 5.2).
	limitPacket = 1200
	tagBytes    = 16
	sealedBytes = limitPacket + tagBytes
	// limitRounds is the number of rounds. A round measures all kinds in turn, and the median of each kind counts.
	limitRounds = 5
	// sendRound and receiveRound are the packets of each round, some 10 ms each. A receive round must fit the socket's
	// buffer of 16 MB at some 2,300 bytes per packet.
	sendRound    = 240 * maxRun
	receiveRound = 100 * maxRun
)

// MeasureLimit measures the machine's limit. The error wraps errors.ErrUnsupported if the system does not support
// segmentation.
func MeasureLimit(ctx context.Context) (*Limit, error) {
	bench, err := newLimitBench()
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
	for round := range limitRounds + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, kind := range kinds {
			took, packets, err := kind()
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errLimit, err)
			}
			if round > 0 {
				costs[i] = append(costs[i], ratio(microseconds(took), float64(packets)))
			}
		}
	}
	after, err := lab.ReadMachineTime()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLimit, err)
	}
	return &Limit{
		SealSegmented: median(costs[0]), PlainSend: median(costs[1]), Receive: median(costs[2]),
		Coalesced:   median(costs[3]),
		MachineBusy: after.BusySince(before),
	}, nil
}

// median returns the middle value, or the mean of the two middle values of an even number; 0 for an empty list.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// sealer encrypts packets like SRTP with AES-128-GCM (RFC 7714). Each packet has its own nonce.
type sealer struct {
	aead  cipher.AEAD
	nonce [12]byte
	index uint32
	plain [limitPacket]byte
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
	dst = append(dst, s.plain[:rtpHeader]...)
	return s.aead.Seal(dst, s.nonce[:], s.plain[rtpHeader:], s.plain[:rtpHeader])
}

// open decrypts a packet in place. The nonce is derived from the sequence number, which equals the index used by seal
// for the first 65,536 packets.
func (s *sealer) open(packet []byte) error {
	binary.BigEndian.PutUint32(s.nonce[8:], uint32(binary.BigEndian.Uint16(packet[2:])))
	_, err := s.aead.Open(packet[rtpHeader:rtpHeader], s.nonce[:], packet[rtpHeader:], packet[:rtpHeader])
	return err
}
