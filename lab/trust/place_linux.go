package trust

import "os"

// place has the programs of a measurement, and a folder for its files.
type place struct{ server, volpeer, folder string }

// newPlace finds the programs and creates the folder, which the caller removes.
func newPlace(b *bench) (p place, err error) {
	if p.server, err = b.program("volsfu"); err != nil {
		return p, err
	}
	if p.volpeer, err = b.program("volpeer"); err != nil {
		return p, err
	}
	p.folder, err = os.MkdirTemp("", "volsfu-trust-")
	return p, err
}

// remove removes the folder.
func (p place) remove() error { return os.RemoveAll(p.folder) }
