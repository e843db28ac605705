// Package web contains the pages for browsers, the viewer and the console, as built by `make web`, so that the server
// is a single file. The package keeps no state.
package web

import (
	"embed"
	"io/fs"
)

// dist contains the built pages in the folder site, which exists only after a build, and a
// placeholder page.
//
//go:embed all:dist
var dist embed.FS

// Pages returns the files of the pages. Without a build, built is false, and there is only an
// index.html that explains how to build the pages.
func Pages() (pages fs.FS, built bool) {
	if site, err := fs.Sub(dist, "dist/site"); err == nil {
		if _, err := fs.Stat(site, "index.html"); err == nil {
			return site, true
		}
	}
	return placeholder{}, false
}

// placeholder is the placeholder page as a file system of one file.
type placeholder struct{}

// Open implements fs.FS.
func (placeholder) Open(name string) (fs.File, error) {
	if name != "index.html" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return dist.Open("dist/placeholder.html")
}
