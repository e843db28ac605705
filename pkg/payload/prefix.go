package payload

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Prefix begins the data of a frame whose descriptors have Prefixed set. The prefix counts in the
// frame's length and is covered by parity.
type Prefix struct {
	// FourCC names the codec of the data that follows, for instance "drco".
	FourCC [4]byte
	// Capture is the capture time, UTC. The zero time is sent as 0 and means unknown.
	Capture time.Time
	// Stamp is the capture time as a 64-bit NTP timestamp. If Stamp is not 0, AppendTo appends it in place of Capture.
	// Unmarshal leaves Stamp 0; Frame.RawPrefix has the timestamp as received.
	Stamp uint64
}

// AppendTo appends the prefix to dst. The encoder then appends the codec's data to the same buffer,
// without a copy.
func (p Prefix) AppendTo(dst []byte) []byte {
	dst = append(dst, p.FourCC[:]...)
	if p.Stamp != 0 {
		return binary.BigEndian.AppendUint64(dst, p.Stamp)
	}
	return binary.BigEndian.AppendUint64(dst, NTP64(p.Capture))
}

// Unmarshal parses the prefix at the start of a frame's data and returns the codec's data after it,
// which refers to the memory of data. The error wraps ErrPrefix if data is too short.
func (p *Prefix) Unmarshal(data []byte) (rest []byte, err error) {
	if len(data) < PrefixSize {
		return nil, fmt.Errorf("%w: %d bytes, expected at least %d", ErrPrefix, len(data), PrefixSize)
	}
	copy(p.FourCC[:], data)
	p.Capture, p.Stamp = TimeFromNTP64(binary.BigEndian.Uint64(data[4:])), 0
	return data[PrefixSize:], nil
}

// ntpToUnix is the number of seconds between the epochs of NTP (1900) and Unix (1970): 70 years
// with 17 leap days.
const ntpToUnix = (70*365 + 17) * 86400

// NTP64 converts a time to the 64-bit timestamp of RFC 5905 section 6: seconds since 1900 and
// fractions of 2^-32 s. The zero time becomes 0.
func NTP64(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	seconds := uint64(t.Unix()+ntpToUnix) & 0xffffffff
	return seconds<<32 | uint64(t.Nanosecond())<<32/1e9
}

// TimeFromNTP64 converts a 64-bit NTP timestamp to UTC, exact to the nanosecond for every timestamp
// made by NTP64. 0 becomes the zero time. The 32 bits of seconds wrap around in February 2036: with
// the highest bit set they mean 1968 to 2036, otherwise 2036 to 2104 (RFC 4330 section 3).
func TimeFromNTP64(ntp uint64) time.Time {
	if ntp == 0 {
		return time.Time{}
	}
	seconds := int64(ntp >> 32)
	if ntp>>63 == 0 {
		seconds += 1 << 32
	}
	// Rounding compensates the truncation in NTP64, which is at most 0.23 ns.
	nanoseconds := (int64(ntp&0xffffffff)*1e9 + 1<<31) >> 32
	return time.Unix(seconds-ntpToUnix, nanoseconds).UTC()
}
