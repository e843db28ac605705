package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
)

// Data describes a folder of test data.
type Data struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Hash is the SHA-256 of the lines "HASH  NAME" of all files in the order of their names, as printed by
	//
	//	find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
	Hash string `json:"sha256"`
}

// readData reads all files of a folder.
func readData(root fs.FS) (*Data, error) {
	var names []string
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	d, all := &Data{Files: len(names)}, sha256.New()
	for _, name := range names {
		if err := d.add(root, name, all); err != nil {
			return nil, fmt.Errorf("test data: %w", err)
		}
	}
	d.Hash = hex.EncodeToString(all.Sum(nil))
	return d, nil
}

// add adds the line of a file.
func (d *Data) add(root fs.FS, name string, all hash.Hash) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	one := sha256.New()
	n, err := io.Copy(one, file)
	if err != nil {
		return err
	}
	d.Bytes += n
	_, err = fmt.Fprintf(all, "%x  %s\n", one.Sum(nil), name)
	return err
}
