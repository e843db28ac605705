// Package deploy checks the files below deploy/ against the server and an edge of volnet: dashboards and alerts use
// existing metrics, and every metric is on a dashboard.
package deploy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	netfn "github.com/volsfu/volsfu/internal/netfn/metrics"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/internal/webhook"
	"github.com/volsfu/volsfu/test/exposition"
)

var (
	root      = filepath.Join("..", "..", "deploy")
	rules     = filepath.Join(root, "prometheus", "rules.yml")
	ruleTests = filepath.Join(root, "prometheus", "rules_test.yml")
)

// dashboards have all metrics of a program, whose names are given.
var dashboards = []struct {
	path  string
	names []string
}{
	{filepath.Join(root, "grafana", "dashboards", "volsfu.json"), metrics.Names()},
	{filepath.Join(root, "grafana", "dashboards", "volnet.json"), netfn.Names()},
}

// selector matches one of the metrics of volsfu or volnet with the following label matchers, if any.
var selector = regexp.MustCompile(`\b((?:volsfu|volnet)_[a-z0-9_]+)(?:\{([^}]*)\})?`)

// equality matches a label matcher for one value; within JSON its quotes are escaped.
var equality = regexp.MustCompile(`([a-z_]+)=\\?"([^"\\]*)\\?"`)

// seriesOfServer returns the metrics of a new server: all of them, because they exist from the start.
func seriesOfServer(t *testing.T) exposition.Series {
	t.Helper()
	o := server.Options{Config: config.DefaultConfig(), Version: "test", Log: zap.NewNop()}
	o.Config.Server.Listen, o.Config.Server.Dev = "127.0.0.1:0", true
	o.Config.Admin.Listen, o.Config.Media.Port = "127.0.0.1:0", 0
	o.Config.VR2Gather.Enabled, o.Config.Server.Edge = true, "conference@/run/volnet/studio.sock"
	o.Config.TURN.Listen, o.Config.Recordings.Directory = "127.0.0.1:0", t.TempDir()
	keys := filepath.Join(t.TempDir(), "webhook.keys")
	secret := base64.StdEncoding.EncodeToString(make([]byte, 32))
	if err := os.WriteFile(keys, []byte("whsec_"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Config.Webhooks = webhook.Config{URLs: []string{"https://127.0.0.1:1/events"}, KeyFile: keys}
	s, err := server.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	series, err := exposition.Scrape(t.Context(), "http://"+s.AdminAddress()+"/metrics")
	if err := errors.Join(err, s.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	return series
}

// pair is an edge with one path and one rule, and the state of its controller.
type pair struct{}

// Snapshot implements the Source of the metrics.
func (pair) Snapshot() (edge.Status, *control.LinkState, error) {
	return edge.Status{
		Paths: []edge.PathStatus{{Name: "fibre", Report: &edge.PathReport{}}},
		Rules: []edge.RuleStatus{{Name: "conference"}},
	}, &control.LinkState{}, nil
}

// seriesOfEdge returns the metrics of an edge.
func seriesOfEdge(t *testing.T) exposition.Series {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := netfn.Register(registry, "test", pair{}); err != nil {
		t.Fatal(err)
	}
	return scraped(t, registry)
}

// scraped returns the metrics of a registry.
func scraped(t *testing.T, registry *prometheus.Registry) exposition.Series {
	t.Helper()
	listener := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer listener.Close()
	series, err := exposition.Scrape(t.Context(), listener.URL)
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// seriesOfNode returns the metrics of a node of a cluster.
func seriesOfNode(t *testing.T) exposition.Series {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := metrics.RegisterCluster(registry, func() metrics.Cluster { return metrics.Cluster{} }); err != nil {
		t.Fatal(err)
	}
	return scraped(t, registry)
}

// labelsOf returns the values of each label of each metric of the programs.
func labelsOf(t *testing.T) map[string]map[string][]string {
	t.Helper()
	series := seriesOfServer(t)
	maps.Copy(series, seriesOfEdge(t))
	maps.Copy(series, seriesOfNode(t))
	labels := make(map[string]map[string][]string)
	for name := range series {
		match := selector.FindStringSubmatch(name)
		if match == nil {
			continue
		}
		metric := metricOf(match[1])
		if labels[metric] == nil {
			labels[metric] = make(map[string][]string)
		}
		for _, pair := range equality.FindAllStringSubmatch(match[2], -1) {
			labels[metric][pair[1]] = append(labels[metric][pair[1]], pair[2])
		}
	}
	return labels
}

// metricOf returns the metric that a series belongs to: a histogram has several.
func metricOf(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

// added are labels that Prometheus adds, or that it derives from a histogram.
var added = []string{"instance", "job", "le"}

// complaints returns the metrics and labels of a text that the programs do not have.
func complaints(text string, labels map[string]map[string][]string) []string {
	var found []string
	for _, match := range selector.FindAllStringSubmatch(text, -1) {
		metric := metricOf(match[1])
		known, ok := labels[metric]
		if !ok {
			found = append(found, metric)
			continue
		}
		for _, pair := range equality.FindAllStringSubmatch(match[2], -1) {
			if !slices.Contains(added, pair[1]) && !slices.Contains(known[pair[1]], pair[2]) {
				found = append(found, fmt.Sprintf("%s{%s=%q}", metric, pair[1], pair[2]))
			}
		}
	}
	return found
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMetricsExist(t *testing.T) {
	labels := labelsOf(t)
	paths := []string{rules, ruleTests}
	for _, d := range dashboards {
		paths = append(paths, d.path)
	}
	for _, path := range paths {
		text := string(read(t, path))
		if !selector.MatchString(text) {
			t.Errorf("%s: expected metrics, found none", path)
		}
		for _, complaint := range complaints(text, labels) {
			t.Errorf("%s uses %s, which no program has", path, complaint)
		}
	}
}

func TestComplaints(t *testing.T) {
	labels := map[string]map[string][]string{"volsfu_rooms": {}, "volsfu_join_seconds": {},
		"volsfu_slots": {"state": {"idle", "active"}}}
	tests := []struct {
		text string
		want []string
	}{
		{`sum(volsfu_rooms{instance="a"}) / rate(volsfu_join_seconds_bucket{le="1"}[5m])`, nil},
		{`volsfu_slots{state="idle",instance=~"$instance"} + volsfu_slots{state!="any"}`, nil},
		{`{"expr": "volsfu_slots{state=\"active\"}"}`, nil},
		{`volsfu_joins_total + volsfu_rooms`, []string{"volsfu_joins_total"}},
		{`volsfu_slots{state="busy"}`, []string{`volsfu_slots{state="busy"}`}},
		{`{"expr": "volsfu_slots{state=\"busy\"}"}`, []string{`volsfu_slots{state="busy"}`}},
		{`volsfu_rooms{room="demo"}`, []string{`volsfu_rooms{room="demo"}`}},
	}
	for _, test := range tests {
		if got := complaints(test.text, labels); !slices.Equal(got, test.want) {
			t.Errorf("%s: expected %q, got %q", test.text, test.want, got)
		}
	}
}

// TestEveryMetricIsOnADashboard checks the metrics of the tables, and all that the programs have.
func TestEveryMetricIsOnADashboard(t *testing.T) {
	var names []string
	for _, d := range dashboards {
		names = append(names, d.names...)
		var shown []string
		for _, match := range selector.FindAllStringSubmatch(string(read(t, d.path)), -1) {
			shown = append(shown, metricOf(match[1]))
		}
		for _, name := range d.names {
			if !slices.Contains(shown, name) {
				t.Errorf("%s is not on the dashboard %s", name, d.path)
			}
		}
	}
	for name := range labelsOf(t) {
		if !slices.Contains(names, name) {
			t.Errorf("%s, which a program has, is not in a table of metrics", name)
		}
	}
}

type panel struct {
	ID         int             `json:"id"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Datasource json.RawMessage `json:"datasource"`
	GridPos    struct{ H, W, X, Y int }
	Targets    []struct{ RefID, Expr string }
}

// TestDashboard checks for errors that Grafana does not report, but shows as an empty panel or not at all.
func TestDashboard(t *testing.T) {
	for _, d := range dashboards {
		t.Run(filepath.Base(d.path), func(t *testing.T) {
			var board struct{ Panels []panel }
			if err := json.Unmarshal(read(t, d.path), &board); err != nil {
				t.Fatal(err)
			}
			checkPanels(t, board.Panels)
		})
	}
}

// checkPanels checks identities, places, data sources and queries.
func checkPanels(t *testing.T, panels []panel) {
	t.Helper()
	ids := make(map[int]string)
	cells := make(map[string]string)
	for _, p := range panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("panels %q and %q have the same id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H < 1 || p.GridPos.W < 1 {
			t.Errorf("panel %q does not fit the 24 columns: %+v", p.Title, p.GridPos)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				cell := fmt.Sprintf("%d,%d", x, y)
				if other, taken := cells[cell]; taken {
					t.Fatalf("panels %q and %q overlap at %s", other, p.Title, cell)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !strings.Contains(string(p.Datasource), "${datasource}") {
			t.Errorf("panel %q does not use the dashboard's data source: %s", p.Title, p.Datasource)
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, target := range p.Targets {
			if target.Expr == "" || !strings.Contains(target.Expr, "$instance") {
				t.Errorf("panel %q, query %s: expected one for the chosen instances, got %q", p.Title, target.RefID,
					target.Expr)
			}
		}
	}
}

func TestFilesParse(t *testing.T) {
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// Templates of the chart become YAML by Helm: test/chart decodes them.
			if entry.Name() == "templates" {
				return filepath.SkipDir
			}
			return nil
		}
		var content any
		switch filepath.Ext(path) {
		case ".yml", ".yaml":
			err = yaml.Unmarshal(read(t, path), &content)
		case ".json":
			err = json.Unmarshal(read(t, path), &content)
		default:
			return nil
		}
		found++
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("expected files to parse, found none")
	}
}
