// Package web carries the pages for browsers, the viewer and the console, as `make web` has built them, so that the server is one file. It keeps no state.
package web

import (
	"embed"
	"io/fs"
)

// dist holds the built pages in the folder site, which is there only once they were built, and the page that stands in for them.
//
//go:embed all:dist
var dist embed.FS

// Pages gives the files of the pages. Where they were not built, built is false, and there is one index.html alone that says so.
func Pages() (pages fs.FS, built bool) {
	if site, err := fs.Sub(dist, "dist/site"); err == nil {
		if _, err := fs.Stat(site, "index.html"); err == nil {
			return site, true
		}
	}
	return placeholder{}, false
}

// placeholder is the stand-in as a file system of one file.
type placeholder struct{}

// Open implements fs.FS.
func (placeholder) Open(name string) (fs.File, error) {
	if name != "index.html" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return dist.Open("dist/placeholder.html")
}
