package trust

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
)

// scanChunk is the size of one read of a process's memory.
const scanChunk = 4 << 20

// scanMemory searches the memory of a process for texts, and returns the number of places of each, and the number of
// bytes that were read. Pages that change during the search may be missed, so that callers search several times.
func scanMemory(pid int, texts map[string][]byte) (found map[string]int64, read int64, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = maps.Close() }()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = memory.Close() }()
	longest := 0
	for _, text := range texts {
		longest = max(longest, len(text))
	}
	found = make(map[string]int64)
	chunk := make([]byte, scanChunk)
	for scanner := bufio.NewScanner(maps); scanner.Scan(); {
		var first, last uint64
		var rights string
		if _, err := fmt.Sscanf(scanner.Text(), "%x-%x %4s", &first, &last, &rights); err != nil {
			return nil, 0, fmt.Errorf("/proc/%d/maps: %w", pid, err)
		}
		if !strings.HasPrefix(rights, "r") {
			continue
		}
		// Reads overlap, so that texts across two reads are found. A text in the overlap counts once only.
		for at := first; at < last; {
			n, err := memory.ReadAt(chunk[:min(uint64(scanChunk), last-at)], int64(at))
			read += int64(n)
			whole := err != nil || at+uint64(n) >= last
			for name, text := range texts {
				if whole {
					found[name] += countBefore(chunk[:n], text, n)
				} else {
					found[name] += countBefore(chunk[:n], text, n-longest)
				}
			}
			if whole {
				break // The region ends, or is one of the kernel that cannot be read.
			}
			at += uint64(n - longest)
		}
	}
	return found, read, nil
}

// countBefore counts the places of a text in data that begin before the given offset.
func countBefore(data, text []byte, offset int) (count int64) {
	for from := 0; ; {
		i := bytes.Index(data[from:], text)
		if i < 0 || from+i >= offset {
			return count
		}
		count++
		from += i + 1
	}
}
