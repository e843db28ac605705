//go:build cgo

package main

import (
	"bytes"
	"errors"
	"image"
	"math"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/signal"
)

// integer is the set of integer types, including C's.
type integer interface {
	~int32 | ~uint32 | ~int64 | ~uint64
}

// structFor allocates the C struct that a function reads: test files cannot name its type.
func structFor[T, R any](func(*T) (R, error)) *T { return new(T) }

func set[T, V integer](to *T, v V) { *to = T(v) }

// put sets a C pointer to a text with a zero byte at the end.
func put[T any](to **T, data []byte) {
	terminated := append(bytes.Clone(data), 0)
	*to = (*T)(unsafe.Pointer(&terminated[0]))
}

// upTo returns a text as C sees it, and whether it has at most the given number of bytes.
func upTo(most int, data []byte) (text string, fits bool) {
	before, _, _ := bytes.Cut(data, []byte{0})
	return string(before), len(before) <= most
}

// FuzzConfig checks that a configuration is read correctly or rejected as an argument.
func FuzzConfig(f *testing.F) {
	long := func(n int) []byte { return bytes.Repeat([]byte("n"), n) }
	url, name := []byte("ws://127.0.0.1"), []byte("name\x00behind")
	const most, over = math.MaxInt32, math.MaxInt32 + 1
	f.Add(url, name, name, name, uint32(1), uint32(0), uint32(256), uint64(64<<20), int64(0))
	f.Add(long(maxURL), long(maxText), long(maxText), long(maxURL), uint32(7), uint32(most), uint32(most), uint64(most),
		int64(math.MinInt64))
	f.Add(url, long(maxText+1), name, name, uint32(0), uint32(0), uint32(0), uint64(0), int64(0))
	f.Add(url, name, name, name, uint32(16), uint32(0), uint32(0), uint64(0), int64(0))
	f.Add(url, name, name, name, uint32(0), uint32(over), uint32(0), uint64(0), int64(0))
	f.Add(url, name, name, name, uint32(0), uint32(0), uint32(over), uint64(0), int64(0))
	f.Add(url, name, name, name, uint32(0), uint32(0), uint32(0), uint64(math.MaxUint64), int64(0))
	f.Fuzz(func(
		t *testing.T, url, room, identity, token []byte, flags, frameBytes, frames uint32, held uint64, rate int64,
	) {
		c := structFor(readConfig)
		put(&c.url, url)
		put(&c.room, room)
		put(&c.identity, identity)
		put(&c.token, token)
		set(&c.flags, flags)
		set(&c.frame_bytes, frameBytes)
		set(&c.queue_frames, frames)
		set(&c.queue_bytes, held)
		set(&c.max_bitrate, rate)
		wantURL, ok1 := upTo(maxURL, url)
		wantRoom, ok2 := upTo(maxText, room)
		wantIdentity, ok3 := upTo(maxText, identity)
		wantToken, ok4 := upTo(maxURL, token)
		fits := ok1 && ok2 && ok3 && ok4 && flags <= 15 &&
			frameBytes <= math.MaxInt32 && frames <= math.MaxInt32 && held <= math.MaxInt32
		got, err := readConfig(c)
		if !fits {
			if !errors.Is(err, guest.ErrArgument) {
				t.Fatalf("got %+v and %v, expected ErrArgument", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.URL != wantURL || got.Room != wantRoom || got.Identity != wantIdentity || got.Token != wantToken {
			t.Fatalf("got %+v, expected %q, %q, %q and %q", got, wantURL, wantRoom, wantIdentity, wantToken)
		}
		if got.Receive != (flags&1 != 0) || got.TCP != (flags&2 != 0) ||
			(got.Controller == client.ControllerGCC) != (flags&4 != 0) || (got.Keys != nil) != (flags&8 != 0) ||
			got.FrameBytes != int(frameBytes) ||
			got.Frames.Things != int(frames) || got.Frames.Bytes != int(held) || int64(got.MaxBitrate) != rate {
			t.Fatalf("got %+v of flags %#x, %d, %d, %d and %d", got, flags, frameBytes, frames, held, rate)
		}
	})
}

// FuzzChoice checks that a choice is read correctly or rejected as an argument.
func FuzzChoice(f *testing.F) {
	f.Add([]byte("ada"), []byte("body"), int32(0), int32(1), uint64(0))
	f.Add([]byte(""), []byte("body"), int32(-1), int32(-3), uint64(5))
	f.Add(bytes.Repeat([]byte("p"), maxText+1), []byte("body"), int32(-2), int32(math.MinInt32), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, participant, publication []byte, tile, quality int32, qualities uint64) {
		c := structFor(readChoice)
		put(&c.participant, participant)
		put(&c.publication, publication)
		set(&c.tile, tile)
		set(&c.quality, quality)
		set(&c.qualities, qualities)
		wantParticipant, ok1 := upTo(maxText, participant)
		wantPublication, ok2 := upTo(maxText, publication)
		got, err := readChoice(c)
		if !ok1 || !ok2 || quality < -3 {
			if !errors.Is(err, guest.ErrArgument) {
				t.Fatalf("got %+v and %v, expected ErrArgument", got, err)
			}
			return
		}
		if err != nil || got.Participant != wantParticipant || got.Publication != wantPublication {
			t.Fatalf("got %+v and %v, expected %q and %q", got, err, wantParticipant, wantPublication)
		}
		if all := tile == -1; all != (got.Tile == nil) || !all && *got.Tile != int(tile) {
			t.Fatalf("got tile %v, expected %d", got.Tile, tile)
		}
		if quality == -3 {
			read := uint64(0)
			for _, q := range got.Quality.Qualities {
				read |= 1 << q
			}
			if read != qualities {
				t.Fatalf("got qualities %b, expected %b", read, qualities)
			}
		}
	})
}

// FuzzHandles checks that every exported function rejects handles that the library has not issued
// for its kind of object, without writing to its other arguments.
func FuzzHandles(f *testing.F) {
	session, frame, event := sessions.Add(nil), frames.Add(held{}), events.Add(held{})
	heard, message := listeners.Add(nil), messages.Add(held{})
	f.Cleanup(func() {
		_, _ = sessions.Remove(session)
		_, _ = frames.Remove(frame)
		_, _ = events.Remove(event)
		_, _ = listeners.Remove(heard)
		_, _ = messages.Remove(message)
	})
	for base := range uint8(6) {
		for _, delta := range []uint64{0, 1, math.MaxUint64, 1 << 55, 1 << 56} {
			f.Add(base, delta, int32(0), int32(-1))
		}
	}
	const noHandle = -3
	f.Fuzz(func(t *testing.T, base uint8, delta uint64, tile, quality int32) {
		number := uint64([]handle.Handle{0, session, frame, event, heard, message}[base%6]) + delta
		outFrame, outEvent := structOf(volsfu_release_frame), structOf(volsfu_release_event)
		set(&outFrame.size, uint64(unsafe.Sizeof(*outFrame)))
		set(&outEvent.size, uint64(unsafe.Sizeof(*outEvent)))
		set(&outFrame.handle, number)
		set(&outEvent.handle, number)
		outMessage := structOf(volsfu_release_message)
		set(&outMessage.size, uint64(unsafe.Sizeof(*outMessage)))
		set(&outMessage.handle, number)
		frameBefore, eventBefore := *outFrame, *outEvent
		for _, call := range []struct {
			what  string
			given handle.Handle
			do    func() int32
		}{
			{"close", session, func() int32 { return call1(volsfu_close, number) }},
			{"set_limits", session, func() int32 { return call3(volsfu_set_limits, number, tile, quality) }},
			{"unpublish", 0, func() int32 { return call1(volsfu_unpublish, number) }},
			{"end_listening", heard, func() int32 { return call1(volsfu_end_listening, number) }},
			{"release_message", message, func() int32 { return int32(volsfu_release_message(outMessage)) }},
			{"wanted", 0, func() int32 { return call3(volsfu_wanted, number, tile, quality) }},
			{"release_frame", frame, func() int32 { return int32(volsfu_release_frame(outFrame)) }},
			{"release_event", event, func() int32 { return int32(volsfu_release_event(outEvent)) }},
		} {
			if call.given != 0 && number == uint64(call.given) {
				continue
			}
			if status := call.do(); status != noHandle {
				t.Errorf("%s of the handle %#x: status %d, expected %d", call.what, number, status, noHandle)
			}
		}
		if *outFrame != frameBefore || *outEvent != eventBefore {
			t.Errorf("a refused release has changed its struct: %+v, %+v", *outFrame, *outEvent)
		}
	})
}

// FuzzMessage checks that a data message is read correctly or rejected.
func FuzzMessage(f *testing.F) {
	f.Add(uint32(0), []byte("chat"), []byte("bob"), uint8(1), []byte("hello"))
	f.Add(uint32(3), []byte(nil), []byte(nil), uint8(0), []byte{0, 255})
	f.Add(uint32(4), []byte("chat"), []byte("bob"), uint8(1), []byte("hello"))
	f.Add(uint32(0), bytes.Repeat([]byte("t"), maxText+1), []byte("bob"), uint8(signal.MaxRecipients+1), []byte{255})
	f.Add(uint32(2), []byte("chat"), []byte("bob"), uint8(1), make([]byte, signal.MaxDataBytes+1))
	f.Fuzz(func(t *testing.T, flags uint32, topic, recipient []byte, recipients uint8, payload []byte) {
		m := structFor(readMessage)
		set(&m.flags, flags)
		put(&m.topic, topic)
		to := arrayOf(m.to, int(recipients)+1)
		for i := range to {
			put(&to[i], recipient)
		}
		m.to = &to[0]
		set(&m.to_count, uint64(recipients))
		data := append(bytes.Clone(payload), 0)
		m.data = unsafe.Pointer(&data[0])
		set(&m.length, uint64(len(payload)))
		_, ok1 := upTo(maxText, topic)
		wantTo, ok2 := upTo(maxText, recipient)
		binary := flags&2 != 0
		fits := flags <= 3 && ok1 && (ok2 || recipients == 0) && recipients <= signal.MaxRecipients &&
			len(payload) <= signal.MaxDataBytes && (binary || utf8.Valid(payload))
		got, err := readMessage(m)
		if !fits {
			if !errors.Is(err, guest.ErrArgument) && !errors.Is(err, guest.ErrTooLarge) {
				t.Fatalf("got %+v and %v, expected an error", got, err)
			}
			return
		}
		if err != nil || got.Lossy != (flags&1 != 0) || len(got.To) != int(recipients) ||
			recipients > 0 && got.To[0] != wantTo || string(got.Binary)+got.Text != string(payload) {
			t.Fatalf("got %+v and %v", got, err)
		}
	})
}

// FuzzRaster decodes frames of depth cameras into arrays of a program. No more than the capacity is written.
func FuzzRaster(f *testing.F) {
	f.Add(rasterFrame(f), uint16(4096), uint32(4))
	f.Add(rasterFrame(f), uint16(1), uint32(0))
	f.Add([]byte("none"), uint16(0), uint32(5))
	f.Fuzz(func(t *testing.T, data []byte, capacity uint16, colors uint32) {
		const guard = 0xa5
		out, name := fourth(volsfu_decode_raster), append([]byte("rgbd"), 0)
		set(&out.size, uint64(unsafe.Sizeof(*out)))
		set(&out.color_bytes, colors)
		set(&out.capacity, uint64(capacity))
		memory := make([][]byte, 3)
		for i, bytesEach := range []int{4, 4, 8} {
			memory[i] = bytes.Repeat([]byte{guard}, bytesEach*int(capacity)+16)
		}
		setPointer(&out.depths, memory[0])
		setPointer(&out.colors, memory[1])
		setPointer(&out.rays, memory[2])
		status := callRaster(volsfu_decode_raster, name, append(bytes.Clone(data), 0), uint64(len(data)), out)
		for i, m := range memory {
			if !bytes.Equal(m[len(m)-16:], bytes.Repeat([]byte{guard}, 16)) {
				t.Errorf("status %d: bytes behind array %d were written", status, i)
			}
		}
		if status == statusOK && uint64(out.count) > uint64(capacity) {
			t.Errorf("%d pixels in room for %d", out.count, capacity)
		}
		if status != statusOK && status != statusBuffer && status != statusArgument && status != statusMalformed &&
			status != statusCodec {
			t.Errorf("status %d", status)
		}
	})
}

// rasterFrame returns a frame of a depth camera.
func rasterFrame(t testing.TB) []byte {
	camera := depth.Camera{Width: 32, Height: 24, FX: 30, FY: 30, CX: 16, CY: 12, Unit: 0.001}
	picture := depth.Image{Depth: make([]uint16, 32*24), Colors: make([][3]uint8, 32*24)}
	for i := range picture.Depth {
		picture.Depth[i] = uint16(1000 + i)
	}
	frame, _, err := rgbd.Codec.NewEncoder().(codec.RasterEncoder).EncodeRaster(nil, &camera, &picture,
		codec.RasterParams{Rect: image.Rect(0, 0, 32, 24), Step: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// setPointer sets a C pointer to memory.
func setPointer[T any](to **T, memory []byte) { *to = (*T)(unsafe.Pointer(&memory[0])) }

// callRaster passes arguments of C types to volsfu_decode_raster.
func callRaster[C, B any, N, R integer, T any](
	do func(*C, *B, N, *T) R, name, data []byte, length uint64, out *T,
) int32 {
	return int32(do((*C)(unsafe.Pointer(&name[0])), (*B)(unsafe.Pointer(&data[0])), N(length), out))
}

// structOf, call1 and call3 pass arguments of C types to exported functions.
func structOf[T, R any](func(*T) R) *T { return new(T) }

func call1[H, R integer](do func(H) R, number uint64) int32 { return int32(do(H(number))) }

func call3[H, A, B, R integer](do func(H, A, B) R, number uint64, a, b int32) int32 {
	return int32(do(H(number), A(a), B(b)))
}
