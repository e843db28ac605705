//go:build !cgo

package jpeg

// Markers of segments (T.81, table B.1).
const (
	startOfFrame       = 0xc0
	defineCodes        = 0xc4
	firstRestart       = 0xd0
	lastRestart        = 0xd7
	startOfImage       = 0xd8
	endOfImage         = 0xd9
	startOfScan        = 0xda
	defineQuantization = 0xdb
	restartInterval    = 0xdd
	application        = 0xe0
	comment            = 0xfe
)

// sampling contains the sampling factors of the three components.
var sampling = [channels]uint8{0x22, 0x11, 0x11}

// isExpected reports whether an image has the single form of this package and the given size, before anything is
// decoded: such an image needs memory for its pixels only, and one pass. Nothing follows the image.
func isExpected(data []byte, width, height int) bool {
	if len(data) < 2 || data[0] != 0xff || data[1] != startOfImage {
		return false
	}
	var frame []byte
	scanned := false
	for at := 2; ; {
		if at+2 <= len(data) && data[at] == 0xff && data[at+1] == endOfImage {
			return scanned && at+2 == len(data)
		}
		if at+4 > len(data) || data[at] != 0xff {
			return false
		}
		marker, length := data[at+1], int(data[at+2])<<8|int(data[at+3])
		end := at + 2 + length
		if length < 2 || end > len(data) {
			return false
		}
		content := data[at+4 : end]
		at = end
		switch {
		case marker == startOfScan:
			if frame == nil || scanned || !isWholeScan(content, frame) {
				return false
			}
			scanned = true
			at = behindScan(data, at)
		case marker == startOfFrame:
			if frame != nil || !isFrame(content, width, height) {
				return false
			}
			frame = content
		case !isOther(marker):
			return false
		}
	}
}

// isFrame checks the content of a frame's segment (T.81, B.2.2).
func isFrame(content []byte, width, height int) bool {
	if len(content) != 6+3*channels || content[0] != 8 || content[5] != channels ||
		int(content[1])<<8|int(content[2]) != height || int(content[3])<<8|int(content[4]) != width {
		return false
	}
	for i, factors := range sampling {
		if content[7+3*i] != factors {
			return false
		}
	}
	return true
}

// isWholeScan reports whether a scan has all components of a frame (T.81, B.2.3), and all coefficients with all bits.
func isWholeScan(scan, frame []byte) bool {
	if len(scan) != 4+2*channels || scan[0] != channels || scan[7] != 0 || scan[8] != 63 || scan[9] != 0 {
		return false
	}
	for i := range channels {
		if scan[1+2*i] != frame[6+3*i] {
			return false
		}
	}
	return true
}

// isOther reports whether a segment may stand before or behind the scan: tables, restart intervals and metadata.
func isOther(marker uint8) bool {
	return marker == defineQuantization || marker == defineCodes || marker == restartInterval || marker == comment ||
		marker >= application && marker < application+16
}

// behindScan returns the end of the coded data of a scan: at a marker other than a restart. A zero behind ff means that
// ff is data, and several ff may precede a marker (T.81, B.1.1).
func behindScan(data []byte, from int) int {
	for at := from; at+1 < len(data); at++ {
		if next := data[at+1]; data[at] == 0xff && next != 0 && next != 0xff &&
			(next < firstRestart || next > lastRestart) {
			return at
		}
	}
	return len(data)
}
