package recording

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Magic is at the start of a segment. The last character is the version.
const Magic = "VOLROOM1"

// kind is the kind of a record.
type kind [4]byte

// The kinds of records.
var (
	kindHead        = kind{'h', 'e', 'a', 'd'}
	kindPublication = kind{'p', 'u', 'b', 'l'}
	kindMessage     = kind{'s', 'i', 'g', 'n'}
	kindFrame       = kind{'f', 'r', 'a', 'm'}
	kindUnit        = kind{'u', 'n', 'i', 't'}
	kindLost        = kind{'l', 'o', 's', 't'}
	kindEnd         = kind{'l', 'a', 's', 't'}
)

// Sizes in bytes, and limits. All integers are little-endian.
const (
	// headerSize is the size of a record's header: kind, length of the payload u32, CRC-32C of the payload u32, CRC-32C
	// of the twelve bytes before u32. The second checksum makes a header recognisable in the middle of a damaged file.
	headerSize = 16
	checked    = headerSize - 4
	// timeSize is the size of the time at the start of every payload except that of the head.
	timeSize = 8
	// mediaSize is the size of the fields before the data of a frame or unit, the time included.
	mediaSize = 32
	// MaxRecord is the maximum length of a payload: the format of frames ends at 65,535 fragments of 1,144 bytes, which
	// are 75 MB.
	MaxRecord = 80 << 20
	// maxJSON is the maximum length of a payload in JSON: more than the longest message of signalling.
	maxJSON = 4 << 20

	flagPrefixed = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// begin appends an empty header. finish fills in the header when the payload has been appended.
func begin(dst []byte) []byte { return append(dst, make([]byte, headerSize)...) }

// finish fills in the header of the record that begins at the index from.
func finish(dst []byte, from int, k kind) []byte {
	seal(dst[from:], k, 0)
	return dst
}

// seal fills in the header of a record, whose payload is the rest of head and the parts, of size bytes.
func seal(head []byte, k kind, size int, parts ...[]byte) {
	h, payload := head[:headerSize], head[headerSize:]
	sum := crc32.Checksum(payload, castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	copy(h, k[:])
	binary.LittleEndian.PutUint32(h[4:], uint32(len(payload)+size))
	binary.LittleEndian.PutUint32(h[8:], sum)
	binary.LittleEndian.PutUint32(h[checked:], crc32.Checksum(h[:checked], castagnoli))
}

// appendJSON appends a record whose payload is a time and JSON. The head has no time.
func appendJSON(dst []byte, k kind, at time.Time, content any) []byte {
	text, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("recording: a record of kind %s cannot be encoded: %v", k, err))
	}
	from := len(dst)
	dst = begin(dst)
	if k != kindHead {
		dst = appendTime(dst, at)
	}
	return finish(append(dst, text...), from, k)
}

func appendTime(dst []byte, at time.Time) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(at.UnixNano()))
}

// Append appends a record to the bytes of a segment. The first record of a segment is a Head.
func Append(dst []byte, r Record) []byte {
	switch r := r.(type) {
	case *Head:
		return appendJSON(append(dst, Magic...), kindHead, time.Time{}, r)
	case *Publication:
		return appendJSON(dst, kindPublication, r.At, r)
	case *Lost:
		return appendJSON(dst, kindLost, r.At, r)
	case *End:
		return appendJSON(dst, kindEnd, r.At, r)
	case *Message:
		from := len(dst)
		return finish(append(appendTime(begin(dst), r.At), r.Text...), from, kindMessage)
	case *Frame:
		return AppendFrame(dst, r)
	case *Unit:
		return AppendUnit(dst, r)
	default:
		panic(fmt.Sprintf("recording: %T is no record of this package", r))
	}
}

// AppendFrame appends a frame to the bytes of a segment.
func AppendFrame(dst []byte, f *Frame) []byte {
	from := len(dst)
	return finish(append(AppendFrameHead(dst, f), f.Data...), from, kindFrame)
}

// AppendFrameHead appends the record of a frame without its data, which may lie elsewhere. SealFrame completes the
// head, and the data follow the head in the segment.
func AppendFrameHead(dst []byte, f *Frame) []byte {
	dst = appendTime(begin(dst), f.At)
	dst = appendMedia(dst, f.Capture, f.Publication, f.Number, f.Tile, f.Quality)
	flags := byte(0)
	if f.Prefixed {
		flags = flagPrefixed
	}
	dst = append(dst, flags)
	return append(dst, f.Codec[:]...)
}

// SealFrame fills in the length and the checksums of a head that AppendFrameHead has appended. The data of the frame
// are the parts, of size bytes in sum.
func SealFrame(head []byte, size int, parts ...[]byte) { seal(head, kindFrame, size, parts...) }

// AppendUnit appends a unit to the bytes of a segment. Payloads have at most 65,535 bytes.
func AppendUnit(dst []byte, u *Unit) []byte {
	from := len(dst)
	dst = appendTime(begin(dst), u.At)
	dst = appendMedia(dst, u.Capture, u.Publication, u.Timestamp, u.Tile, u.Quality)
	dst = append(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(u.Payloads)))
	for _, p := range u.Payloads {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p)))
		dst = append(dst, p...)
	}
	return finish(dst, from, kindUnit)
}

func appendMedia(dst []byte, capture uint64, publication, number uint32, tile int, q volumetric.Quality) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, capture)
	dst = binary.LittleEndian.AppendUint32(dst, publication)
	dst = binary.LittleEndian.AppendUint32(dst, number)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(tile))
	return append(dst, uint8(q))
}

// header is the header of a record.
type header struct {
	kind   kind
	length int
	sum    uint32
}

// parseHeader parses a header and reports whether it is valid.
func parseHeader(data []byte) (header, bool) {
	h := header{
		kind: kind(data[:4]), length: int(binary.LittleEndian.Uint32(data[4:])),
		sum: binary.LittleEndian.Uint32(data[8:]),
	}
	if crc32.Checksum(data[:checked], castagnoli) != binary.LittleEndian.Uint32(data[checked:]) {
		return header{}, false
	}
	return h, h.length <= h.kind.longest()
}

// longest returns the maximum length of a payload, -1 for unknown kinds.
func (k kind) longest() int {
	switch k {
	case kindFrame, kindUnit:
		return MaxRecord
	case kindHead, kindPublication, kindMessage, kindLost, kindEnd:
		return maxJSON
	default:
		return -1
	}
}

// String returns the kind's four characters.
func (k kind) String() string { return string(k[:]) }

// parse parses the payload of a record. The record refers to the memory of the payload. Errors wrap ErrFormat.
func (h header) parse(payload []byte) (Record, error) {
	if h.kind == kindHead {
		r := &Head{}
		return r, h.json(payload, r)
	}
	least := timeSize
	if h.kind == kindFrame || h.kind == kindUnit {
		least = mediaSize
	}
	if len(payload) < least {
		return nil, fmt.Errorf("%w: a record of kind %s has %d bytes, expected at least %d", ErrFormat, h.kind,
			len(payload), least)
	}
	at := time.Unix(0, int64(binary.LittleEndian.Uint64(payload))).UTC()
	rest := payload[timeSize:]
	switch h.kind {
	case kindPublication:
		r := &Publication{At: at}
		if err := h.json(rest, r); err != nil {
			return nil, err
		}
		return r, r.check()
	case kindLost:
		r := &Lost{At: at}
		return r, h.json(rest, r)
	case kindEnd:
		r := &End{At: at}
		return r, h.json(rest, r)
	case kindMessage:
		return &Message{At: at, Text: rest}, nil
	case kindFrame:
		return parseFrame(at, payload), nil
	default:
		return parseUnit(at, payload)
	}
}

func (h header) json(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: a record of kind %s: %w", ErrFormat, h.kind, err)
	}
	return nil
}

// check checks the content of a publication that was read.
func (p *Publication) check() error {
	if err := volumetric.ValidateName("participant", p.Participant); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := p.Description.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if !p.Qualities.Valid() {
		return fmt.Errorf("%w: qualities are %.20q, expected %s or %s", ErrFormat, p.Qualities, Best, All)
	}
	return nil
}

func parseFrame(at time.Time, payload []byte) *Frame {
	return &Frame{
		At:          at,
		Capture:     binary.LittleEndian.Uint64(payload[8:]),
		Publication: binary.LittleEndian.Uint32(payload[16:]),
		Number:      binary.LittleEndian.Uint32(payload[20:]),
		Tile:        int(binary.LittleEndian.Uint16(payload[24:])),
		Quality:     volumetric.Quality(payload[26]),
		Prefixed:    payload[27]&flagPrefixed != 0,
		Codec:       volumetric.FourCC(payload[28:mediaSize]),
		Data:        payload[mediaSize:],
	}
}

func parseUnit(at time.Time, payload []byte) (*Unit, error) {
	u := &Unit{
		At:          at,
		Capture:     binary.LittleEndian.Uint64(payload[8:]),
		Publication: binary.LittleEndian.Uint32(payload[16:]),
		Timestamp:   binary.LittleEndian.Uint32(payload[20:]),
		Tile:        int(binary.LittleEndian.Uint16(payload[24:])),
		Quality:     volumetric.Quality(payload[26]),
	}
	count, rest := binary.LittleEndian.Uint32(payload[28:]), payload[mediaSize:]
	for range count {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return nil, fmt.Errorf("%w: a unit of %d packets has %d bytes", ErrFormat, count, len(payload))
		}
		size := int(binary.LittleEndian.Uint16(rest))
		u.Payloads = append(u.Payloads, rest[2:2+size:2+size])
		rest = rest[2+size:]
	}
	if len(rest) > 0 || count > math.MaxUint16 {
		return nil, fmt.Errorf("%w: a unit of %d packets has %d further bytes", ErrFormat, count, len(rest))
	}
	return u, nil
}
