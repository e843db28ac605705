package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/cluster/kubernetes"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// The release of the chart, as docs/cluster.md installs it.
const (
	release   = "volsfu"
	namespace = "volsfu"
	// chartFolder is the folder of the chart in the source tree.
	chartFolder = "deploy/helm"
	// present and next are two images with the same program.
	present, next = "volsfu:present", "volsfu:next"
)

// servers is the number of the chart's servers. One host more is free, for the server of a host in maintenance.
const servers = 3

// control is the place of the control plane in nodeNames, after the hosts of the servers.
const control = servers + 1

// rolloutPatience bounds the installation and the rollout of the chart.
const rolloutPatience = 5 * time.Minute

// unhurriedValues are the flags of unhurried in the configuration of the chart.
var unhurriedValues = []string{"config.forward.congestion.min_bps=200000000",
	"config.forward.congestion.start_bps=200000000", "config.forward.max_lag=2s", "config.forward.cache_age=4s",
	"config.forward.queue_budget=2s"}

// charted is the installed chart.
type charted struct {
	*kubernetes.Cluster
	// chart is the path of the chart.
	chart string
	nodes *nodes
}

// rollout installs the chart on a control plane of Kubernetes and replaces all servers by those of another image.
func rollout(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	c, r, err := conference(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	b.progress.Say("a rollout of another image")
	r.resetGaps()
	began := time.Now()
	unready, err := c.roll(ctx)
	if err != nil {
		return nil, err
	}
	lines = []claim.Line{
		claim.Stated("rollout: duration", time.Since(began).Seconds(), "s"),
		claim.AtMost("rollout: most servers that are not ready at the same time", float64(unready), "", 1),
	}
	frames, gap, err := c.frames(ctx, r, "rollout")
	return append(append(lines, frames...), claim.Stated(
		"rollout: longest time between two frames of a tile, beyond the interval", lab.Milliseconds(gap), "ms")), err
}

// eviction installs the chart on a control plane of Kubernetes, and evicts a server for the maintenance of its host
// while the eviction of a second server is tried.
func eviction(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	c, r, err := conference(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	b.progress.Say("maintenance of a host, and evictions of a second server")
	r.resetGaps()
	e, err := c.evict(ctx)
	if err != nil {
		return nil, err
	}
	lines = []claim.Line{
		claim.Exactly("evictions of a second server accepted before the first server is ready again", e.early,
			fmt.Sprintf("of %d", e.refused+e.early), 0),
		claim.Stated("the first server is ready again after", e.back.Seconds(), "s"),
	}
	if e.refused+e.early == 0 {
		lines = append(lines, claim.Fail("the eviction of a second server", "was not tried before the first was ready"))
	}
	frames, _, err := c.frames(ctx, r, "evictions")
	return append(lines, frames...), err
}

// conference installs the chart, and adds participants at all servers.
func conference(ctx context.Context, b *bench) (c *charted, r *room, err error) {
	if c, err = install(ctx, b); err != nil {
		return nil, nil, err
	}
	r = &room{nodes: c.nodes}
	if err = r.fill(ctx); err == nil {
		err = r.awaitFrames(ctx, 10)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return c, r, nil
}

// frames waits until all participants have further frames, ends their loads and counts the frames. gap is the longest
// time between two frames of a tile, less the interval.
func (c *charted) frames(ctx context.Context, r *room, name string) (lines []claim.Line, gap time.Duration, err error) {
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	gap = r.longestGap() - interval(body)
	if err := r.settle(ctx); err != nil {
		return nil, 0, err
	}
	lost, received := r.lost(everyone)
	return []claim.Line{
		claim.Exactly(fmt.Sprintf("%s: frames lost of %d", name, lost+received), lost, "", 0),
		claim.Exactly(name+": participants whose session has ended, or who received wrong frames", r.failures(), "", 0),
		claim.Exactly(name+": containers that ended by themselves or failed to end in order", c.Failures(), "", 0),
	}, gap, nil
}

// install starts the control plane and the hosts, and installs the chart with the commands of docs/cluster.md.
func install(ctx context.Context, b *bench) (c *charted, err error) {
	programs, err := kubernetes.FindPrograms(b.options.Kubernetes)
	if err != nil {
		return nil, err
	}
	source, err := suite.SourceTree("", chartFolder)
	if err != nil {
		return nil, err
	}
	program, err := b.program()
	if err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	c = &charted{chart: filepath.Join(source, chartFolder), nodes: &nodes{}}
	c.nodes.running, c.nodes.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.nodes.network, err = newNetwork(ctx, nodeNames[:control+1], nil); err != nil {
		return nil, err
	}
	if c.nodes.folder, err = os.MkdirTemp("", "volsfu-chart-"); err != nil {
		return nil, err
	}
	if c.nodes.token, err = mint(true); err != nil {
		return nil, err
	}
	b.progress.Say("a control plane of Kubernetes")
	began := time.Now()
	s := kubernetes.Setup{Programs: programs, Folder: c.nodes.folder, Address: forClients.own(),
		Images: map[string]string{present: program, next: program}}
	for i, name := range nodeNames[:control+1] {
		s.Hosts = append(s.Hosts, kubernetes.Host{Name: name, Address: forClients.address(i),
			Labels: map[string]string{"volsfu": "server"}})
	}
	s.Control, s.Hosts = s.Hosts[control], s.Hosts[:control]
	if c.Cluster, err = kubernetes.Start(ctx, s, c.nodes.network); err != nil {
		return nil, err
	}
	b.progress.Say("  ready after %.1f s; the chart", time.Since(began).Seconds())
	if err := c.addSecrets(ctx, program); err != nil {
		return nil, err
	}
	arguments := []string{"install", release, c.chart, "--namespace", namespace, "--set", "image=" + present, "--set",
		strings.Join(unhurriedValues, ",")}
	began = time.Now()
	if err := c.Helm(ctx, arguments...); err != nil {
		return nil, err
	}
	if _, err := c.awaitComplete(ctx); err != nil {
		return nil, err
	}
	b.progress.Say("  installed after %.1f s", time.Since(began).Seconds())
	return c, c.attach(ctx)
}

// addSecrets adds the namespace and the Secrets that the chart expects.
func (c *charted) addSecrets(ctx context.Context, program string) error {
	if err := c.Client.Create(ctx, "/api/v1/namespaces", map[string]any{
		"metadata": kubernetes.Metadata{Name: namespace}}); err != nil {
		return err
	}
	secrets := map[string]map[string]string{"volsfu-keys": {"keys": key}}
	folder := filepath.Join(c.nodes.folder, "authority")
	for i := range servers {
		pod := podName(i)
		// Each server has a region of its own, so that participants stay on the node at which they join.
		if err := makeCertificate(ctx, program, folder, pod, pod); err != nil {
			return err
		}
		files, err := os.ReadDir(filepath.Join(folder, pod))
		if err != nil {
			return err
		}
		secrets[pod+"-cluster"] = make(map[string]string)
		for _, f := range files {
			content, err := os.ReadFile(filepath.Join(folder, pod, f.Name()))
			if err != nil {
				return err
			}
			secrets[pod+"-cluster"][f.Name()] = string(content)
		}
	}
	for name, entries := range secrets {
		if err := c.Client.Create(ctx, "/api/v1/namespaces/"+namespace+"/secrets", map[string]any{
			"metadata": kubernetes.Metadata{Name: name}, "stringData": entries}); err != nil {
			return err
		}
	}
	return nil
}

// podName returns the name of a pod.
func podName(number int) string { return fmt.Sprintf("%s-%d", release, number) }

// podPath returns the path of a pod.
func podPath(number int) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + podName(number)
}

// awaitComplete waits until all servers have the present template and are available, and returns the largest number of
// servers that were not ready at the same time.
func (c *charted) awaitComplete(ctx context.Context) (unready int, err error) {
	ctx, cancel := context.WithTimeout(ctx, rolloutPatience)
	defer cancel()
	return unready, kubernetes.Await(ctx, c.Cluster, "all servers are replaced and available",
		"/apis/apps/v1/namespaces/"+namespace+"/statefulsets/"+release, func(s *kubernetes.StatefulSet) bool {
			unready = max(unready, s.Spec.Replicas-s.Status.Ready)
			return s.Complete()
		})
}

// attach adds the servers as the nodes at which participants join.
func (c *charted) attach(ctx context.Context) error {
	for i := range servers {
		var pod kubernetes.Pod
		if err := c.Client.Get(ctx, podPath(i), &pod); err != nil {
			return err
		}
		c.nodes.all = append(c.nodes.all, &node{name: podName(i),
			conference: testbed.Attend(fmt.Sprintf("ws://%s:%d", pod.Status.Address, signalPort))})
	}
	return nil
}

// roll replaces the servers by those of another image, with the command of docs/cluster.md. It returns the largest
// number of servers that were not ready at the same time.
func (c *charted) roll(ctx context.Context) (unready int, err error) {
	if err := c.Helm(ctx, "upgrade", release, c.chart, "--namespace", namespace, "--reuse-values", "--set",
		"image="+next); err != nil {
		return 0, err
	}
	return c.awaitComplete(ctx)
}

// evictions are the results of evict.
type evictions struct {
	// refused is the number of refused evictions of the second server. early is 1 if an eviction was accepted while the
	// first server was not ready, otherwise 0.
	refused, early int64
	// back is the time from the first eviction until the server is ready again.
	back time.Duration
}

// evict evicts a server after new pods are kept from its host, and tries to evict a second server until the eviction is
// accepted. Then evict waits until all servers are available.
func (c *charted) evict(ctx context.Context) (e evictions, err error) {
	const first, second = 1, 0
	ctx, cancel := context.WithTimeout(ctx, rolloutPatience)
	defer cancel()
	if err := kubernetes.Await(ctx, c.Cluster, "a disruption is allowed",
		"/apis/policy/v1/namespaces/"+namespace+"/poddisruptionbudgets/"+release, func(b *kubernetes.Budget) bool {
			return b.Status.Allowed == 1
		}); err != nil {
		return e, err
	}
	var evicted kubernetes.Pod
	if err := c.Client.Get(ctx, podPath(first), &evicted); err != nil {
		return e, err
	}
	if err := c.Client.Cordon(ctx, evicted.Spec.NodeName); err != nil {
		return e, err
	}
	began := time.Now()
	if err := c.Client.Evict(ctx, namespace, podName(first)); err != nil {
		return e, fmt.Errorf("the eviction of %s: %w", podName(first), err)
	}
	for {
		failed := c.Client.Evict(ctx, namespace, podName(second))
		if failed == nil {
			break
		}
		if !kubernetes.Refused(failed, http.StatusTooManyRequests) {
			return e, fmt.Errorf("the eviction of %s: %w", podName(second), failed)
		}
		e.refused++
		if err := lab.Pause(ctx, 50*time.Millisecond); err != nil {
			return e, fmt.Errorf("the eviction of %s is refused: %w", podName(second), errors.Join(err, c.Trouble()))
		}
	}
	var pod kubernetes.Pod
	if err := c.Client.Get(ctx, podPath(first), &pod); err != nil && !kubernetes.Refused(err, http.StatusNotFound) {
		return e, err
	}
	if pod.Metadata.UID == evicted.Metadata.UID || !pod.Ready() {
		e.early = 1
	}
	e.back = time.Since(began)
	if pod.Spec.NodeName == evicted.Spec.NodeName {
		return e, fmt.Errorf("%s is on host %s again, on which no new pods may run", podName(first), pod.Spec.NodeName)
	}
	if err := kubernetes.Await(ctx, c.Cluster, podName(second)+" has ended", podPath(second),
		func(p *kubernetes.Pod) bool {
			return p.Metadata.UID != "" && p.Metadata.DeletionTimestamp == nil
		}); err != nil {
		return e, err
	}
	_, err = c.awaitComplete(ctx)
	return e, err
}

// close ends the participants, the servers, the control plane and the network.
func (c *charted) close() error {
	for _, at := range c.nodes.all {
		at.conference.Close()
	}
	var err error
	if c.Cluster != nil {
		err = c.Cluster.Close()
	}
	return errors.Join(err, c.nodes.close())
}
