package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// restartDelay is the time between the end of a container and its next start.
const restartDelay = time.Second

// searchPath is the PATH of a container whose image sets none.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// kubelet runs the pods of one host. It belongs to the goroutine that calls step.
type kubelet struct {
	cluster *Cluster
	host    Host
	running map[string]*container
}

// container is the container of a pod.
type container struct {
	pod Pod
	// folder is the root folder of the container, empty before the volumes exist.
	folder string
	// process is nil before the first start.
	process *lab.Program
	// started is the start of the process, ended the time at which its end was noticed.
	started, ended time.Time
	restarts       int
	// ready and sick are the decisions of the probes.
	ready, sick atomic.Bool
	// kill is the time of SIGKILL for a pod that is deleted, zero before SIGTERM.
	kill time.Time
	// reported is the status that the API has, changed the time of its last change.
	reported status
	changed  time.Time
	probes   sync.WaitGroup
	stop     context.CancelFunc
}

// status is the part of a container's status that changes.
type status struct {
	running, ready bool
	restarts       int
}

// step compares the pods of the host with the containers.
func (k *kubelet) step(ctx context.Context, pods []Pod, now time.Time) (err error) {
	present := make(map[string]bool)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != k.host.Name {
			continue
		}
		uid := pod.Metadata.UID
		present[uid] = true
		if k.running[uid] == nil {
			k.running[uid] = &container{}
		}
		k.running[uid].pod = *pod
		if failed := k.advance(ctx, k.running[uid], now); failed != nil {
			err = errors.Join(err, fmt.Errorf("pod %s at %s: %w", pod.Metadata.Name, k.host.Name, failed))
		}
	}
	for uid, c := range k.running {
		if !present[uid] {
			// The pod was removed without its kubelet.
			k.remove(c)
			delete(k.running, uid)
		}
	}
	return err
}

// advance does the next step of a pod.
func (k *kubelet) advance(ctx context.Context, c *container, now time.Time) error {
	deleted := c.pod.Metadata.DeletionTimestamp != nil
	if c.process != nil && c.ended.IsZero() {
		select {
		case <-c.process.Ended():
			c.ended = now
			c.endProbes()
			if c.failed() {
				k.cluster.failures.Add(1)
			}
		default:
		}
	}
	runs := c.process != nil && c.ended.IsZero()
	switch {
	case deleted && !runs:
		k.remove(c)
		delete(k.running, c.pod.Metadata.UID)
		return k.confirm(ctx, c)
	case deleted && c.kill.IsZero():
		c.kill = now.Add(time.Duration(c.pod.Metadata.DeletionGrace) * time.Second)
		if err := syscall.Kill(c.process.PID(), syscall.SIGTERM); err != nil {
			return err
		}
	case deleted && now.After(c.kill):
		c.process.Kill()
	case runs && c.sick.Load():
		c.process.Kill()
	case c.process == nil || !runs && now.Sub(c.ended) >= restartDelay:
		if err := k.start(ctx, c, now); err != nil {
			return err
		}
	}
	return k.report(ctx, c, now)
}

// failed reports whether a container that has ended did not end as it was asked to: it ended before SIGTERM, with
// another status than 0, or by SIGKILL.
func (c *container) failed() bool {
	return c.kill.IsZero() || c.process.Wait(context.Background()) != nil
}

// confirm removes a deleted pod from the API after its container has ended.
func (k *kubelet) confirm(ctx context.Context, c *container) error {
	m := &c.pod.Metadata
	err := k.cluster.client.Delete(ctx, podPath(m.Namespace, m.Name), map[string]any{"gracePeriodSeconds": 0,
		"preconditions": map[string]any{"uid": m.UID}})
	if Refused(err, http.StatusNotFound) || Refused(err, http.StatusConflict) {
		return nil
	}
	return err
}

// remove ends a container and removes its files.
func (k *kubelet) remove(c *container) {
	c.endProbes()
	if c.process != nil {
		c.process.Kill()
	}
	if c.folder != "" {
		_ = os.RemoveAll(c.folder)
	}
}

// endProbes waits until the probes of a container have ended.
func (c *container) endProbes() {
	if c.stop != nil {
		c.stop()
		c.probes.Wait()
	}
	c.ready.Store(false)
	c.sick.Store(false)
}

// unsupported returns an error if the pod has a feature that the kubelet has not.
func unsupported(pod *Pod) error {
	s := &pod.Spec
	refuse := func(feature string) error { return fmt.Errorf("this kubelet does not support %s", feature) }
	switch {
	case !s.HostNetwork:
		return refuse("networks of pods: expected hostNetwork")
	case s.DNSPolicy != "ClusterFirstWithHostNet":
		return refuse("dnsPolicy " + s.DNSPolicy)
	case s.Security.Volume != s.Security.Group:
		return refuse(fmt.Sprintf("fsGroup %d beside runAsGroup %d", s.Security.Volume, s.Security.Group))
	case len(s.Containers) != 1 || len(s.InitContainers) > 0:
		return refuse("more than one container")
	}
	c := &s.Containers[0]
	switch {
	case c.Lifecycle != nil:
		return refuse("lifecycle")
	case c.Startup != nil:
		return refuse("startupProbe")
	case c.Privileged.Privileged:
		return refuse("privileged containers")
	case len(c.Command) > 0:
		return refuse("command")
	}
	for _, p := range []*Probe{c.Readiness, c.Liveness} {
		if p != nil && p.HTTP == nil {
			return refuse("probes other than httpGet")
		}
	}
	for _, m := range c.Mounts {
		if m.SubPath != "" {
			return refuse("subPath")
		}
	}
	return nil
}

// start starts the container of a pod, the first time with its volumes.
func (k *kubelet) start(ctx context.Context, c *container, now time.Time) error {
	if err := unsupported(&c.pod); err != nil {
		return err
	}
	spec := &c.pod.Spec.Containers[0]
	if c.folder == "" {
		if err := k.prepare(ctx, c); err != nil {
			return err
		}
	}
	variables := make(map[string]string)
	environment := append(k.cluster.network.Environment(k.host.Name), searchPath, "HOSTNAME="+k.host.Name)
	for _, v := range spec.Variables {
		value, err := k.value(&c.pod, &v)
		if err != nil {
			return err
		}
		variables[v.Name], environment = value, append(environment, v.Name+"="+value)
	}
	security := &c.pod.Spec.Security
	// unshare gives the process a /proc, as containers have one, and then the user's rights.
	arguments := []string{"--mount-proc", "--root", c.folder, "--wd", "/", "--setgid", strconv.Itoa(security.Group),
		"--setuid", strconv.Itoa(security.User), "--", "/" + programName}
	for _, a := range spec.Arguments {
		arguments = append(arguments, expand(a, variables))
	}
	command := k.cluster.network.Command(k.cluster.processes, k.host.Name, "unshare", arguments...)
	command.Env = environment
	// The name of a pod stands for its program in errors.
	process, err := lab.StartCommand(c.pod.Metadata.Name, command, nil)
	if err != nil {
		return err
	}
	if c.process != nil {
		c.restarts++
	}
	c.process, c.started, c.ended = process, now, time.Time{}
	k.startProbes(c, spec)
	return nil
}

// startProbes starts the probes of a container.
func (k *kubelet) startProbes(c *container, spec *Container) {
	ctx, cancel := context.WithCancel(k.cluster.processes)
	c.stop = cancel
	c.ready.Store(spec.Readiness == nil)
	if spec.Readiness != nil {
		c.probes.Go(func() {
			probe(ctx, k.cluster.network, k.host.Name, spec.Readiness, false, c.ready.Store)
		})
	}
	if spec.Liveness != nil {
		c.probes.Go(func() {
			probe(ctx, k.cluster.network, k.host.Name, spec.Liveness, true, func(well bool) { c.sick.Store(!well) })
		})
	}
}

// programName is the name of the program in an image.
const programName = "volsfu"

// prepare makes the root folder of a container: the program, the addresses of the DNS, and the volumes.
func (k *kubelet) prepare(ctx context.Context, c *container) (err error) {
	image := c.pod.Spec.Containers[0].Image
	program, exists := k.cluster.Images[image]
	if !exists {
		return fmt.Errorf("there is no image %s", image)
	}
	folder := filepath.Join(k.cluster.Folder, "pods", c.pod.Metadata.UID)
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	for _, inside := range []string{"etc", "proc", "run"} {
		if err := os.MkdirAll(filepath.Join(folder, inside), 0o755); err != nil {
			return err
		}
	}
	if err := link(program, filepath.Join(folder, programName)); err != nil {
		return err
	}
	namespace := c.pod.Metadata.Namespace
	// The search list is that of pods whose policy is ClusterFirst. Containers may read it, whatever the mask of this
	// process.
	resolver := file{[]byte(fmt.Sprintf("nameserver %v\nsearch %s.svc.%s svc.%s %s\noptions ndots:5\n",
		k.cluster.Address, namespace, domain, domain, domain)), 0o644}
	if err := writeVolume(filepath.Join(folder, "etc"), map[string]file{"resolv.conf": resolver}, 0); err != nil {
		return err
	}
	for _, m := range c.pod.Spec.Containers[0].Mounts {
		for i := range c.pod.Spec.Volumes {
			v := &c.pod.Spec.Volumes[i]
			if v.Name != m.Name {
				continue
			}
			files, err := volumeFiles(ctx, k.cluster.client, namespace, v)
			if err != nil {
				return err
			}
			if err := writeVolume(filepath.Join(folder, m.Path), files, c.pod.Spec.Security.Volume); err != nil {
				return err
			}
		}
	}
	c.folder = folder
	return nil
}

// link makes a file available under a second name: as a link, or as a copy if both are on different devices.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// value returns the value of a variable.
func (k *kubelet) value(pod *Pod, v *Variable) (string, error) {
	if v.From == nil {
		return v.Value, nil
	}
	if v.From.Field == nil {
		return "", fmt.Errorf("this kubelet does not support the source of the variable %s", v.Name)
	}
	switch path := v.From.Field.Path; path {
	case "metadata.name":
		return pod.Metadata.Name, nil
	case "metadata.namespace":
		return pod.Metadata.Namespace, nil
	case "status.hostIP", "status.podIP":
		return k.host.Address.String(), nil
	default:
		return "", fmt.Errorf("this kubelet does not support the field %s of the variable %s", path, v.Name)
	}
}

// reference is a reference to a variable in an argument.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// expand replaces the references to variables in an argument. References to other variables stay.
func expand(argument string, variables map[string]string) string {
	return reference.ReplaceAllStringFunc(argument, func(r string) string {
		if value, exists := variables[strings.Trim(r, "$()")]; exists {
			return value
		}
		return r
	})
}

// report sends the status of a pod if it has changed.
func (k *kubelet) report(ctx context.Context, c *container, now time.Time) error {
	if c.process == nil {
		return nil
	}
	present := status{running: c.ended.IsZero(), ready: c.ready.Load(), restarts: c.restarts}
	if present == c.reported {
		return nil
	}
	if present.ready != c.reported.ready || c.changed.IsZero() {
		c.changed = now
	}
	truth := map[bool]string{false: "False", true: "True"}
	address := []map[string]netip.Addr{{"ip": k.host.Address}}
	spec := &c.pod.Spec.Containers[0]
	state := map[string]any{"running": map[string]any{"startedAt": c.started.UTC().Format(time.RFC3339)}}
	if !present.running {
		state = map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff",
			"message": c.process.LastOutput()}}
	}
	m := &c.pod.Metadata
	err := k.cluster.client.Merge(ctx, podPath(m.Namespace, m.Name)+"/status", map[string]any{"status": map[string]any{
		"phase": "Running", "hostIP": k.host.Address, "podIP": k.host.Address, "hostIPs": address, "podIPs": address,
		"startTime": c.started.UTC().Format(time.RFC3339),
		"conditions": []Condition{
			{Type: "PodScheduled", Status: "True", Changed: c.started},
			{Type: "Initialized", Status: "True", Changed: c.started},
			{Type: "ContainersReady", Status: truth[present.ready], Changed: c.changed},
			{Type: "Ready", Status: truth[present.ready], Changed: c.changed},
		},
		"containerStatuses": []map[string]any{{"name": spec.Name, "image": spec.Image, "imageID": spec.Image,
			"ready": present.ready, "started": present.running, "restartCount": present.restarts, "state": state}},
	}})
	if Refused(err, http.StatusNotFound) {
		return nil
	}
	if err == nil {
		c.reported = present
	}
	return err
}
