package control

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// maxStoreBytes is the size of maxEdges edges with maxOrders orders of 512 bytes each.
const maxStoreBytes = maxEdges * maxOrders * 512

// stored is the content of a controller's file: the orders of each edge.
type stored struct {
	Edges map[string][]OrderState `json:"edges"`
}

// load reads the orders of a file into an empty ledger. A file that does not exist has no orders.
func (l *ledger) load(path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := l.decode(io.LimitReader(file, maxStoreBytes)); err != nil {
		return fmt.Errorf("read orders: %s is not the file of a controller: %w", path, err)
	}
	return nil
}

// decode reads the content of a file.
func (l *ledger) decode(from io.Reader) error {
	var content stored
	if err := json.NewDecoder(from).Decode(&content); err != nil {
		return err
	}
	for name, orders := range content.Edges {
		for i, o := range orders {
			if err := o.Validate(); err != nil {
				return fmt.Errorf("edge %.80q: %w", name, err)
			}
			if !validName(name) || o.ID == "" {
				return fmt.Errorf("edge %.80q: %w: expected a name of the edge and an id", name, ErrOrder)
			}
			orders[i].State = Pending
		}
		l.edges[name] = &entry{orders: orders}
	}
	return nil
}

// save writes the orders to a file. The file is replaced as a whole: a crash leaves the old or the new orders.
func (l *ledger) save(path string, now time.Time) error {
	if err := replaceFile(path, l.encode(now)); err != nil {
		return fmt.Errorf("write orders: %w", err)
	}
	return nil
}

// encode returns the content of a file.
func (l *ledger) encode(now time.Time) []byte {
	content := stored{Edges: make(map[string][]OrderState)}
	for name, e := range l.edges {
		if e.expire(now); len(e.orders) > 0 {
			content.Edges[name] = e.orders
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		panic("orders are plain data: " + err.Error())
	}
	return data
}

// replaceFile writes a new file beside the old one and renames it.
func replaceFile(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
