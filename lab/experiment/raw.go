package experiment

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// compressed is the least size of a file of an iteration that is compressed. Records of frames shrink to a tenth: a
// minute of fifteen tiles at 30 frames per second is 30 MB.
const compressed = 64 << 10

// tidy compresses the files of an iteration, or removes them.
func tidy(folder string, keep bool) error {
	if !keep {
		return os.RemoveAll(folder)
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(path) == ".gz" {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Size() < compressed {
			return err
		}
		return compress(path)
	})
}

// compress replaces a file by a compressed one.
func compress(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.Create(path + ".gz")
	if err != nil {
		return err
	}
	w, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err == nil {
		_, err = io.Copy(w, from)
		err = errors.Join(err, w.Close())
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Remove(path)
}
