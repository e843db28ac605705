package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// Network has the hosts as network namespaces (topology.Network).
type Network interface {
	// Command returns a command that will run in the namespace of a host.
	Command(ctx context.Context, host, name string, arguments ...string) *exec.Cmd
	// Environment returns the variables that mark a process of a host.
	Environment(host string) []string
	// Inside calls f on a thread in the namespace of a host.
	Inside(host string, f func() error) error
}

// Host is a host that runs pods.
type Host struct {
	Name    string
	Address netip.Addr
	Labels  map[string]string
}

// Setup selects the programs and hosts of a cluster.
type Setup struct {
	// Programs are the programs of the control plane.
	Programs Programs
	// Folder is an empty folder for the files of all programs.
	Folder string
	// Control is the host of the control plane, which runs no pods.
	Control Host
	// Address is the address of this process for the hosts, where the DNS answers.
	Address netip.Addr
	Hosts   []Host
	// Images are the paths of the programs of images. A program is static.
	Images map[string]string
}

// tick is the time between two steps of the scheduler and the kubelets.
const tick = 100 * time.Millisecond

// heartbeat is the time between two reports of a node, as the kubelet's.
const heartbeat = 10 * time.Second

// Cluster is a control plane with its hosts.
type Cluster struct {
	Setup
	*ControlPlane
	network Network
	names   *names
	client  *Client
	// processes is the context of all containers, which ends after the last step.
	processes context.Context
	cancel    context.CancelFunc
	done      sync.WaitGroup
	// failures counts containers that have ended by themselves or have failed to end in order.
	failures atomic.Int64

	mu sync.Mutex
	// trouble is the error of the last step.
	trouble error
}

// Start starts the control plane and registers the hosts.
func Start(ctx context.Context, s Setup, network Network) (c *Cluster, err error) {
	c = &Cluster{Setup: s, network: network}
	stepping, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.processes, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			stop()
			err = errors.Join(err, c.Close())
		}
	}()
	if c.ControlPlane, err = startControlPlane(ctx, c.processes, &c.Setup, network); err != nil {
		return c, err
	}
	c.client = c.Client
	if c.names, err = listenNames(s.Address); err != nil {
		return c, fmt.Errorf("DNS of the cluster: %w", err)
	}
	for _, h := range s.Hosts {
		if err := c.register(ctx, h); err != nil {
			return c, err
		}
	}
	cancel := c.cancel
	c.cancel = func() {
		stop()
		c.done.Wait()
		cancel()
	}
	c.done.Go(func() { c.run(stepping) })
	return c, nil
}

// register adds the node of a host.
func (c *Cluster) register(ctx context.Context, h Host) error {
	labels := map[string]string{"kubernetes.io/hostname": h.Name}
	for key, value := range h.Labels {
		labels[key] = value
	}
	resources := map[string]string{"cpu": "64", "memory": "256Gi", "pods": "110"}
	if err := c.client.Create(ctx, "/api/v1/nodes", map[string]any{
		"metadata": Metadata{Name: h.Name, Labels: labels},
		"status": map[string]any{"capacity": resources, "allocatable": resources,
			"addresses": []map[string]string{{"type": "InternalIP", "address": h.Address.String()}}},
	}); err != nil {
		return err
	}
	return c.beat(ctx, h, time.Now())
}

// beat reports that a node is ready.
func (c *Cluster) beat(ctx context.Context, h Host, now time.Time) error {
	return c.client.Merge(ctx, nodePath(h.Name)+"/status", map[string]any{"status": map[string]any{
		"conditions": []Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Changed: now,
			Reported: &now}}}})
}

// run steps the scheduler, the kubelets and the DNS until the context ends, and then ends all containers.
func (c *Cluster) run(ctx context.Context) {
	kubelets := make([]*kubelet, len(c.Hosts))
	for i, h := range c.Hosts {
		kubelets[i] = &kubelet{cluster: c, host: h, running: make(map[string]*container)}
	}
	var beaten time.Time
	for ctx.Err() == nil {
		now := time.Now()
		err := c.step(ctx, kubelets, now)
		if now.Sub(beaten) >= heartbeat {
			for _, h := range c.Hosts {
				err = errors.Join(err, c.beat(ctx, h, now))
			}
			beaten = now
		}
		c.mu.Lock()
		c.trouble = err
		c.mu.Unlock()
		_ = lab.Pause(ctx, tick)
	}
	for _, k := range kubelets {
		for _, container := range k.running {
			k.remove(container)
		}
	}
}

// step reads the objects, assigns pods and advances them.
func (c *Cluster) step(ctx context.Context, kubelets []*kubelet, now time.Time) error {
	var pods List[Pod]
	var nodes List[Node]
	var slices List[EndpointSlice]
	if err := errors.Join(
		c.client.Get(ctx, "/api/v1/pods", &pods),
		c.client.Get(ctx, "/api/v1/nodes", &nodes),
		c.client.Get(ctx, "/apis/discovery.k8s.io/v1/endpointslices", &slices),
	); err != nil {
		return err
	}
	records := recordsOf(slices.Items)
	c.names.records.Store(&records)
	var err error
	for _, b := range schedule(pods.Items, nodes.Items) {
		m := &b.pod.Metadata
		err = errors.Join(err, c.client.Create(ctx, podPath(m.Namespace, m.Name)+"/binding", map[string]any{
			"metadata": Metadata{Name: m.Name, Namespace: m.Namespace, UID: m.UID},
			"target":   map[string]string{"apiVersion": "v1", "kind": "Node", "name": b.node}}))
	}
	for _, k := range kubelets {
		err = errors.Join(err, k.step(ctx, pods.Items, now))
	}
	return err
}

// Await waits until an object of the API is in a state. The error has the last error of the kubelets.
func Await[Object any](ctx context.Context, c *Cluster, what, path string, holds func(*Object) bool) error {
	for {
		object := new(Object)
		if err := c.client.Get(ctx, path, object); err == nil && holds(object) {
			return nil
		}
		if err := lab.Pause(ctx, tick); err != nil {
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(err, c.Trouble()))
		}
	}
}

// Trouble returns the error of the last step of the scheduler, the kubelets and the DNS, nil without one.
func (c *Cluster) Trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// Failures returns the number of times that a container has ended without a deletion of its pod, or with another status
// than 0 after one. It includes containers of pods that no longer exist.
func (c *Cluster) Failures() int64 { return c.failures.Load() }

// Close ends all containers, then the control plane.
func (c *Cluster) Close() error {
	c.cancel()
	if c.names != nil {
		c.names.close()
	}
	if c.ControlPlane == nil {
		return nil
	}
	return c.close()
}
