//go:build cgo && portable

package libopus

// #cgo linux LDFLAGS: -ldl
import "C"

const remedy = "install libopus (Debian: libopus0), " +
	"or put libopus.so.0, libopus.0.dylib or opus.dll beside this library"
