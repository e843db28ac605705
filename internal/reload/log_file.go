package reload

import (
	"fmt"
	"os"
	"sync"
)

// LogFile is a log that is appended to a file. A LogFile implements zapcore.WriteSyncer. The methods are safe for
// concurrent use.
type LogFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

// OpenLog opens a file for appending. A new file is writable by its owner and readable by its group.
func OpenLog(path string) (*LogFile, error) {
	file, err := openLog(path)
	if err != nil {
		return nil, err
	}
	return &LogFile{path: path, file: file}, nil
}

func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the log file: %w", err)
	}
	return file, nil
}

// Write implements io.Writer.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

// Sync writes the contents to the disk.
func (l *LogFile) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Sync()
}

// Moved reports whether the path names another file than the open one, or no file.
func (l *LogFile) Moved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	open, err := l.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(l.path)
	return err != nil || !os.SameFile(open, named)
}

// Reopen opens the file that the path names, and creates it if necessary. On an error the log continues in the open
// file.
func (l *LogFile) Reopen() error {
	file, err := openLog(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	before := l.file
	l.file = file
	l.mu.Unlock()
	return before.Close()
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
