package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// fakeCamera has Chromium show its test picture as that of a camera.
const fakeCamera = "--use-fake-device-for-media-stream --use-fake-ui-for-media-stream"

// openBrowser returns Chromium with the viewer of the server as a receiver of the matrix and as its publishers. The
// error wraps lab.ErrUnable without Node, Chromium or playwright-core.
func openBrowser(_ context.Context, folder string) (receiver, []publisher, error) {
	in := receiver{name: "browser"}
	tree, err := suite.SourceTree("", "clients/web/test/browser")
	if err != nil {
		return in, nil, err
	}
	if _, err := os.Stat(filepath.Join(tree, "clients", "web", "node_modules", "playwright-core")); err != nil {
		return in, nil, fmt.Errorf("%w: make deps installs playwright-core: %w", lab.ErrUnable, err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		node = filepath.Join(tree, ".tools", "bin", "node")
		if _, err := os.Stat(node); err != nil {
			return in, nil, fmt.Errorf("%w: there is no Node, which make deps installs: %w", lab.ErrUnable, err)
		}
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return in, nil, fmt.Errorf("%w: there is no Chromium: %w", lab.ErrUnable, err)
	}
	script := func(name, url string, arguments ...string) []string {
		return append([]string{"env", "CHROMIUM_ARGUMENTS=" + fakeCamera, node,
			filepath.Join(tree, "clients", "web", "test", "browser", name), chromium,
			strings.Replace(url, "ws", "http", 1), folder}, arguments...)
	}
	in.command = func(url, room, secret string) []string {
		return script("matrix_watch.mjs", url, room, strconv.Itoa(framesPerSecond*int(watching.Seconds())), secret)
	}
	page := func(codec, source string) publisher {
		return fed(in.name, codec, func(url, room, secret string) []string {
			return script("matrix_publish.mjs", url, room, source, strconv.Itoa(points), secret)
		})
	}
	return in, []publisher{page("draco", "figure"), page("rgbd", "camera")}, nil
}
