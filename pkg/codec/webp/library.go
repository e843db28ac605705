package webp

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/foreign"
)

// library contains libwebp's functions: addresses of those without floating-point arguments.
type library struct {
	initConfig func(config *config, preset int32, quality float32, version int32) int32

	initPicture, encodePicture, initWriter, write, clearWriter, decodeInto, version uintptr
}

// found opens libwebp once. The error wraps ErrUnavailable.
var found = sync.OnceValues(open)

// Available returns nil if this program can encode images, or else an error that wraps ErrUnavailable.
func Available() error {
	_, err := found()
	return err
}

// files contains the names of the library, with the paths of Homebrew, which the loader does not search.
func files() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"libwebp.dll", "libwebp-7.dll"}
	case "darwin":
		return []string{"libwebp.7.dylib", "/opt/homebrew/lib/libwebp.7.dylib", "/usr/local/lib/libwebp.7.dylib"}
	}
	return []string{"libwebp.so.7"}
}

func open() (*library, error) {
	if !foreign.Supported {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, foreign.Unsupported)
	}
	var refused []string
	for _, file := range files() {
		handle, err := foreign.Open(file)
		if err == nil {
			return attach(file, handle)
		}
		refused = append(refused, err.Error())
	}
	return nil, fmt.Errorf("%w: install the package libwebp7 of Debian, or webp of Homebrew (%s)", ErrUnavailable,
		strings.Join(refused, "; "))
}

// The versions of libwebp that have the layouts below: 1.x, whose interface of the encoder has the major version 2.
const (
	majorVersion = 1
	abiVersion   = 0x020f
)

// attach finds the functions of an opened library.
func attach(file string, handle uintptr) (*library, error) {
	l := &library{}
	var initConfig uintptr
	for name, address := range map[string]*uintptr{
		"WebPConfigInitInternal": &initConfig, "WebPPictureInitInternal": &l.initPicture,
		"WebPEncode": &l.encodePicture, "WebPMemoryWriterInit": &l.initWriter, "WebPMemoryWrite": &l.write,
		"WebPMemoryWriterClear": &l.clearWriter, "WebPDecodeYUVInto": &l.decodeInto,
		"WebPGetEncoderVersion": &l.version,
	} {
		var ok bool
		if *address, ok = foreign.Symbol(handle, name); !ok {
			return nil, fmt.Errorf("%w: %s lacks %s, expected libwebp 1.x", ErrUnavailable, file, name)
		}
	}
	if v := foreign.Invoke(l.version, nil); v>>16 != majorVersion {
		return nil, fmt.Errorf("%w: %s is version %#06x, expected libwebp 1.x", ErrUnavailable, file, v)
	}
	foreign.Bind(&l.initConfig, initConfig)
	return l, nil
}

// config has the layout of WebPConfig (webp/encode.h), with room for the fields of later versions.
type config struct {
	_       int32   // lossless
	quality float32 // 0 to 100
	method  int32   // 0 (fast) to 6
	_       [61]int32
}

// picture has the layout of WebPPicture.
type picture struct {
	_, _              int32 // use of ARGB, colour space
	width, height     int32
	y, u, v           unsafe.Pointer
	yStride, uvStride int32
	_                 unsafe.Pointer
	_                 [3]int32
	_                 unsafe.Pointer
	_                 [4]int32
	writer            uintptr
	custom            unsafe.Pointer
	_                 int32
	_, _              unsafe.Pointer
	failed            int32
	_, _              unsafe.Pointer
	_                 [3]uint32
	_, _              unsafe.Pointer
	_                 [8]uint32
	_                 [4]unsafe.Pointer
	_                 [16]unsafe.Pointer // later versions
}

// writer has the layout of WebPMemoryWriter. The memory is the library's.
type writer struct {
	memory    unsafe.Pointer
	size, max uintptr
	_         [4]uint32
}

// memory is the memory that the library reads and writes. It must be on the heap, because a stack may move between the
// taking of an address and a call.
type memory struct {
	planes planes
	// config is zero until the first image is encoded.
	config    config
	picture   picture
	writer    writer
	arguments [11]uintptr
	data      []byte
}

// newMemory allocates. A function that is not inlined returns memory of the heap.
//
//go:noinline
func newMemory() *memory { return new(memory) }

// invoke calls a function.
func (m *memory) invoke(function uintptr, arguments ...uintptr) uintptr {
	n := copy(m.arguments[:], arguments)
	return foreign.Invoke(function, m.arguments[:n])
}

// address returns the address of memory on the heap.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// decode decodes the file in data into the planes.
func (l *library) decode(m *memory, data []byte) bool {
	m.data = append(m.data[:0], data...)
	p := &m.planes
	chroma := uintptr(p.chroma())
	ok := m.invoke(l.decodeInto, address(&m.data[0]), uintptr(len(data)), address(&p.luma[0]), uintptr(len(p.luma)),
		uintptr(p.width), address(&p.blue[0]), uintptr(len(p.blue)), chroma, address(&p.red[0]), uintptr(len(p.red)),
		chroma) != 0
	runtime.KeepAlive(m)
	return ok
}

// method is one of libwebp's methods, 0 (fast) to 6. Method 0 takes 23 % more bytes, and method 4 twice the time for
// 5 % fewer.
const method = 2

// encode appends the planes as a file to dst.
func (l *library) encode(m *memory, dst []byte, quality float32) ([]byte, error) {
	// Preset 0 is the default.
	if m.config == (config{}) && l.initConfig(&m.config, 0, quality, abiVersion) == 0 ||
		m.invoke(l.initPicture, address(&m.picture), abiVersion)&1 == 0 {
		return dst, fmt.Errorf("%w: its interface has changed, expected libwebp 1.x", ErrUnavailable)
	}
	m.config.quality, m.config.method = quality, method
	p := &m.planes
	pic := &m.picture
	pic.width, pic.height = int32(p.width), int32(p.height)
	pic.y, pic.u, pic.v = unsafe.Pointer(&p.luma[0]), unsafe.Pointer(&p.blue[0]), unsafe.Pointer(&p.red[0])
	pic.yStride, pic.uvStride = int32(p.width), int32(p.chroma())
	pic.writer, pic.custom = l.write, unsafe.Pointer(&m.writer)
	m.invoke(l.initWriter, address(&m.writer))
	ok := m.invoke(l.encodePicture, address(&m.config), address(pic))&1 != 0
	if ok {
		dst = append(dst, unsafe.Slice((*byte)(m.writer.memory), m.writer.size)...)
	}
	m.invoke(l.clearWriter, address(&m.writer))
	runtime.KeepAlive(m)
	if !ok {
		return dst, fmt.Errorf("%w: error %d", errEncode, pic.failed)
	}
	return dst, nil
}
