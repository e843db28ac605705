package viewer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// policy is the content security policy of all pages, without the origins that may embed them: scripts, styles, workers
// and connections of this server only, nothing inline, nothing from other servers. WebAssembly is compiled (Draco);
// pictures are made by scripts (blob:). elsewhere are further sources of connections.
func policy(elsewhere string) string {
	return "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; " +
		"img-src 'self' blob:; connect-src 'self'" + elsewhere + "; media-src 'self' blob:; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors "
}

// websockets are the connections of the viewer in a cluster: a session continues on nodes that are not known when the
// page is loaded. Browsers refuse ws: in pages over https.
const websockets = " ws: wss:"

// viewerPage is the file of the viewer.
const viewerPage = "index.html"

// hashed is the folder of files whose names depend on their content, so that browsers may cache them without limit.
const hashed = "assets/"

// Handler serves the pages of a file system: index.html at /, and NAME/index.html at /NAME.
type Handler struct {
	files fs.FS
	// embedded is the policy of the viewer, which pages of the configured origins may embed.
	embedded string

	mu     sync.Mutex
	loaded map[string]*file
}

// file is one file as it is sent.
type file struct {
	contentType string
	plain       []byte
	// compressed is nil if compression saves nothing.
	compressed []byte
}

// New returns a handler for the files. Pages of the given origins, in the form https://host[:port] or *, may embed the
// viewer (index.html). No page may embed another page, such as the console: an embedding page could lead an operator to
// click on a button that is not what it seems. In a cluster the viewer may connect to the websockets of other nodes.
func New(files fs.FS, origins []string, cluster bool) *Handler {
	viewerPolicy := policy("")
	if cluster {
		viewerPolicy = policy(websockets)
	}
	h := &Handler{files: files, embedded: viewerPolicy + "'none'", loaded: make(map[string]*file)}
	if len(origins) > 0 {
		h.embedded = viewerPolicy + strings.Join(origins, " ")
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "pages are read with GET", http.StatusMethodNotAllowed)
		return
	}
	name := nameOf(r.URL.Path)
	f, err := h.file(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, "the page cannot be read", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	if name == viewerPage {
		header.Set("Content-Security-Policy", h.embedded)
	} else {
		header.Set("Content-Security-Policy", policy("")+"'none'")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Vary", "Accept-Encoding")
	if strings.HasPrefix(name, hashed) {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache")
	}
	body := f.plain
	if f.compressed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.compressed
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// nameOf returns the file of a path; for a folder, its index.
func nameOf(urlPath string) string {
	name := strings.TrimPrefix(path.Clean("/"+urlPath), "/")
	switch {
	case name == "":
		return viewerPage
	case path.Ext(name) == "":
		return name + "/index.html"
	default:
		return name
	}
}

// file returns a file, which is read and compressed once.
func (h *Handler) file(name string) (*file, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.loaded[name]; f != nil {
		return f, nil
	}
	plain, err := fs.ReadFile(h.files, name)
	if err != nil {
		return nil, err
	}
	f := &file{contentType: contentType(name), plain: plain, compressed: compress(plain)}
	h.loaded[name] = f
	return f, nil
}

// contentType returns the content type of a file, independently of the tables of the system.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".wasm":
		return "application/wasm"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".html", ".css":
		return mime.TypeByExtension(ext)
	default:
		return "application/octet-stream"
	}
}

// compress returns the compressed file, nil if it is not smaller.
func compress(plain []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("gzip knows its own levels: " + err.Error())
	}
	_, _ = z.Write(plain)
	if z.Close() != nil || b.Len() >= len(plain) {
		return nil
	}
	return b.Bytes()
}
