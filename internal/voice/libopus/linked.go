//go:build cgo && !portable

package libopus

// #cgo CFLAGS: -DVOLSFU_OPUS_LINKED
// #cgo LDFLAGS: -l:libopus.a -lm
import "C"

const remedy = "the library cannot be used"
