package realsense

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// recordingReader is a recording read by a child process. A goroutine reads its pictures from the pipe, one
// ahead of the reader.
type recordingReader struct {
	path     string
	head     head
	child    *exec.Cmd
	output   io.ReadCloser
	pipe     *bufio.Reader
	limit    time.Duration // for one message
	alarm    *time.Timer   // kills a child that exceeds the limit
	timedOut atomic.Bool
	frames   chan readResult
	free     chan *picture
	quit     chan struct{}
	running  sync.WaitGroup
}

// readResult is a picture, the end of the recording, or a permanent error.
type readResult struct {
	picture *picture // nil at the end
	err     error
}

// pictures is the number of buffers: for the reader, for the queue, and for the goroutine that
// reads.
const pictures = 3

// openRecordingReader starts a child and waits for its description of the recording, or for its error.
func openRecordingReader(config Config, path string, limit time.Duration) (*recordingReader, error) {
	if err := checkFile(path); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRecording, path, err)
	}
	r := &recordingReader{
		path:   path,
		limit:  limit,
		frames: make(chan readResult, 1),
		free:   make(chan *picture, pictures),
		quit:   make(chan struct{}),
	}
	if err := r.start(config); err != nil {
		return nil, err
	}
	for range pictures {
		r.free <- new(picture)
	}
	if err := r.readHead(); err != nil {
		err = r.explain(err)
		r.close()
		return nil, err
	}
	r.running.Go(r.run)
	return r, nil
}

func (r *recordingReader) start(config Config) error {
	path, err := filepath.Abs(r.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecording, err)
	}
	text, err := json.Marshal(job{config.Library, path, config.Filters})
	if err != nil {
		panic(err) // only strings and numbers, which always encode
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%w: %s: cannot start a player, the path of this program is unknown: %w",
			ErrRecording, r.path, err)
	}
	r.child = exec.Command(program)
	r.child.Env = append(
		r.child.Environ(),
		jobVariable+"="+string(text),
		"LRS_LOG_LEVEL=NONE",
	) // the library writes log messages to standard output, which carries the pictures
	if r.output, err = r.child.StdoutPipe(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRecording, r.path, err)
	}
	if err := r.child.Start(); err != nil {
		return fmt.Errorf("%w: %s: player: %w", ErrRecording, r.path, err)
	}
	r.pipe = bufio.NewReaderSize(r.output, 1<<20)
	r.alarm = time.AfterFunc(r.limit, func() {
		r.timedOut.Store(true)
		_ = r.child.Process.Kill()
	})
	return nil
}

// messageTimeout is the time limit for a message of a child. messageTimeout exceeds stallTimeout, after which the child
// itself reports an error.
const messageTimeout = 2 * stallTimeout

func (r *recordingReader) readHead() error {
	message, err := r.message()
	if err != nil {
		return err
	}
	if message != headMessage {
		return fmt.Errorf("the first message of the player is %q", message)
	}
	text, err := readText(r.pipe)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.head); err != nil {
		return err
	}
	if r.head.FPS < 1 {
		return fmt.Errorf("the frame rate is %d", r.head.FPS)
	}
	return r.head.Camera.Validate()
}

// message reads the first byte of a message. An error message of the child results in an error.
func (r *recordingReader) message() (byte, error) {
	r.alarm.Reset(r.limit)
	message, err := r.pipe.ReadByte()
	if err != nil || message != errorMessage {
		return message, err
	}
	text, err := readText(r.pipe)
	if err != nil {
		return 0, err
	}
	return 0, errors.New(string(text))
}

// run passes pictures on until the reader is closed or fails.
func (r *recordingReader) run() {
	for {
		var p *picture
		select {
		case p = <-r.free:
		case <-r.quit:
			return
		}
		got, err := r.read(p)
		next := readResult{picture: p, err: err}
		if !got {
			r.free <- p // there is a place for this picture
			next.picture = nil
		}
		// The child may wait for the reader to return the picture. That is not a hang.
		r.alarm.Stop()
		select {
		case r.frames <- next:
		case <-r.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// read reads a picture and returns false at the end of the recording.
func (r *recordingReader) read(p *picture) (bool, error) {
	message, err := r.message()
	switch {
	case err != nil:
		return false, r.explain(err)
	case message == endMessage:
		return false, nil
	case message != pictureMessage:
		return false, r.explain(fmt.Errorf("the message of the player is %q", message))
	}
	if err := p.read(r.pipe, &r.head.Camera); err != nil {
		return false, r.explain(err)
	}
	return true, nil
}

// explain adds the file to an error, and the exit state if the child ended without a message.
func (r *recordingReader) explain(err error) error {
	switch {
	case r.timedOut.Load():
		err = fmt.Errorf("librealsense did not finish reading within %v", r.limit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		_ = r.child.Wait() // the state has the result
		err = fmt.Errorf("librealsense crashed when reading it (%v)", r.child.ProcessState)
	}
	return fmt.Errorf("%w: %s: %w", ErrRecording, r.path, err)
}

// close ends the child and the goroutine.
func (r *recordingReader) close() {
	close(r.quit)
	r.alarm.Stop()
	_ = r.child.Process.Kill() // it may already have ended
	r.running.Wait()
	_ = r.output.Close()
	_ = r.child.Wait() // it was killed or already waited for
}
