// Package chart checks the Helm chart in deploy/helm: it lints and renders the chart as Helm does, decodes the objects
// into the types of Kubernetes, and passes the arguments of the pods to volsfu. The package is a module of its own,
// because of the modules that Helm needs; make lint runs it.
package chart

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

var (
	root   = filepath.Join("..", "..")
	folder = filepath.Join(root, "deploy", "helm")
)

// release and namespace are those of the rendered chart.
const (
	release   = "volsfu"
	namespace = "conferences"
)

// everything sets all values that have an effect if they are set.
var everything = []string{
	"tls=true", "replicas=5", "imagePullSecrets[0].name=registry", "hostAddress=false", "drainSeconds=30",
	"tolerations[0].key=media,tolerations[0].operator=Exists", "ingress.enabled=true,ingress.host=sfu.example.org",
	`config.signalling.trusted_proxies={10.0.0.0/8}`, "config.media.stun_servers={stun:stun.example.org:3478}",
}

// alone are the values of a single server.
var alone = []string{"replicas=1,maxReplicas=1"}

// objects are the rendered objects, and the text for the operator.
type objects struct {
	configMap *core.ConfigMap
	set       *apps.StatefulSet
	services  map[string]*core.Service
	budget    *policy.PodDisruptionBudget
	ingress   *networking.Ingress
	notes     string
}

// settings parses values as helm install --set does.
func settings(t *testing.T, set []string) map[string]any {
	t.Helper()
	values := make(map[string]any)
	for _, s := range set {
		if err := strvals.ParseInto(s, values); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return values
}

// template renders the chart. An error is that of the schema of values or of the templates.
func template(t *testing.T, set ...string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(chart, settings(t, set),
		chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, values)
}

// render renders the chart and decodes the objects. Unknown and repeated fields are errors.
func render(t *testing.T, set ...string) *objects {
	t.Helper()
	files, err := template(t, set...)
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{services: make(map[string]*core.Service)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			o.notes = files[name]
			continue
		}
		for _, document := range strings.Split(files[name], "\n---\n") {
			if strings.TrimSpace(document) != "" {
				o.add(t, name, []byte(document))
			}
		}
	}
	if o.configMap == nil || o.set == nil || o.budget == nil || len(o.services) != 2 {
		t.Fatalf("objects are missing in %+v", o)
	}
	return o
}

func (o *objects) add(t *testing.T, file string, document []byte) {
	t.Helper()
	var kind struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(document, &kind); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var into any
	switch kind.APIVersion + "/" + kind.Kind {
	case "v1/ConfigMap":
		o.configMap = new(core.ConfigMap)
		into = o.configMap
	case "apps/v1/StatefulSet":
		o.set = new(apps.StatefulSet)
		into = o.set
	case "v1/Service":
		service := new(core.Service)
		defer func() { o.services[service.Name] = service }()
		into = service
	case "policy/v1/PodDisruptionBudget":
		o.budget = new(policy.PodDisruptionBudget)
		into = o.budget
	case "networking.k8s.io/v1/Ingress":
		o.ingress = new(networking.Ingress)
		into = o.ingress
	default:
		t.Fatalf("%s: unexpected object %+v", file, kind)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatalf("%s: %v:\n%s", file, err, document)
	}
}

// TestLint: helm lint finds nothing.
func TestLint(t *testing.T) {
	for name, set := range map[string][]string{"default": nil, "alone": alone, "everything": everything} {
		for _, m := range lint.AllWithKubeVersion(folder, settings(t, set), namespace, nil).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// TestObjects: the objects belong together.
func TestObjects(t *testing.T) {
	for name, set := range map[string][]string{"default": nil, "alone": alone, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			o := render(t, set...)
			pods := o.set.Spec.Template
			for object, selector := range map[string]map[string]string{
				"StatefulSet":         o.set.Spec.Selector.MatchLabels,
				"PodDisruptionBudget": o.budget.Spec.Selector.MatchLabels,
				"Service":             o.services[release].Spec.Selector,
				"headless Service":    o.services[release+"-nodes"].Spec.Selector,
			} {
				if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pods.Labels)) {
					t.Errorf("%s selects %v, the pods have %v", object, selector, pods.Labels)
				}
			}
			headless := o.services[o.set.Spec.ServiceName]
			if headless == nil || headless.Spec.ClusterIP != core.ClusterIPNone ||
				!headless.Spec.PublishNotReadyAddresses {
				t.Errorf("the service of the StatefulSet is %+v", headless)
			}
			affinity := pods.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			if !pods.Spec.HostNetwork || len(affinity) != 1 || affinity[0].TopologyKey != core.LabelHostname ||
				!labels.SelectorFromSet(affinity[0].LabelSelector.MatchLabels).Matches(labels.Set(pods.Labels)) {
				t.Errorf("two pods may be on one host: %+v", pods.Spec)
			}
			if most := o.budget.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 {
				t.Errorf("the budget is %+v", o.budget.Spec)
			}
			if readiness := pods.Spec.Containers[0].ReadinessProbe.HTTPGet; readiness.Path != "/readyz" {
				t.Errorf("the pod is ready by %+v", readiness)
			}
			if o.ingress != nil {
				backend := o.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
				service := o.services[backend.Name]
				if service == nil || backend.Port.Name != service.Spec.Ports[0].Name {
					t.Errorf("the ingress leads to %+v", backend)
				}
			}
			checkVolumes(t, &pods.Spec)
			checkPorts(t, o)
		})
	}
}

// checkVolumes: each mount has a volume, and each volume is mounted.
func checkVolumes(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	if !slices.Equal(volumes, mounts) {
		t.Errorf("the volumes are %q, the mounts %q", volumes, mounts)
	}
}

// checkPorts: no port has two uses, and the service leads to a port of the pods.
func checkPorts(t *testing.T, o *objects) {
	t.Helper()
	type port struct {
		protocol core.Protocol
		number   int32
	}
	used := make(map[port]bool)
	names := make(map[string]int32)
	for _, p := range o.set.Spec.Template.Spec.Containers[0].Ports {
		key := port{p.Protocol, p.ContainerPort}
		if used[key] {
			t.Errorf("%s port %d is used twice", p.Protocol, p.ContainerPort)
		}
		used[key], names[p.Name] = true, p.ContainerPort
	}
	if target := o.services[release].Spec.Ports[0].TargetPort.StrVal; names[target] == 0 {
		t.Errorf("the service leads to the port %q of %v", target, names)
	}
}

// filesOf returns the files of a pod in a volume, by path, with the entry of the Secret.
func filesOf(pod *core.PodSpec, volume, name string) map[string]string {
	files := make(map[string]string)
	for _, v := range pod.Volumes {
		if v.Name != volume || v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			for _, item := range source.Secret.Items {
				if before, file, _ := strings.Cut(item.Path, "/"); before == name {
					files[file] = source.Secret.Name + "/" + item.Key
				}
			}
		}
	}
	return files
}

// program builds the server.
func program(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(t.TempDir(), "volsfu"))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-C", root, "-buildvcs=false", "-o", file, "./cmd/volsfu")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return file
}

// TestArguments: volsfu accepts the arguments, variables and configuration of the pods, the files of the cluster are
// those of volsfu cluster certificate, and a pod is given longer than its server drains.
func TestArguments(t *testing.T) {
	volsfu := program(t)
	certificates := t.TempDir()
	if output, err := exec.Command(volsfu, "cluster", "certificate", "--directory", certificates,
		release+"-0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	entries, err := os.ReadDir(filepath.Join(certificates, release+"-0"))
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]string)
	for _, e := range entries {
		made[e.Name()] = release + "-0-cluster/" + e.Name()
	}
	for name, set := range map[string][]string{"default": nil, "alone": alone, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			o := render(t, set...)
			pod := o.set.Spec.Template.Spec
			cluster := filesOf(&pod, "cluster", release+"-0")
			if name == "alone" && len(cluster) > 0 || name != "alone" && !maps.Equal(cluster, made) {
				t.Errorf("the pod has the files %v, the command makes %v", cluster, made)
			}
			printed := o.print(t, volsfu, pod.Containers[0].Args)
			drain, err := time.ParseDuration(printed.Server.DrainTime)
			if err != nil || time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second <= drain {
				t.Errorf("a pod has %d s for a drain of %q", *pod.TerminationGracePeriodSeconds,
					printed.Server.DrainTime)
			}
			if (printed.Cluster.URL == "") != (name == "alone") || printed.Admin.Listen != "127.0.0.1:9090" ||
				(len(printed.Media.PublicIPs) == 0) != (name == "everything") || (printed.Server.TLSCert == "") ==
				(name == "everything") {
				t.Errorf("the configuration is %+v", printed)
			}
		})
	}
}

// configuration is a part of the output of volsfu config print.
type configuration struct {
	Server struct {
		TLSCert   string `json:"tls_cert"`
		DrainTime string `json:"drain_time"`
	}
	Media struct {
		PublicIPs []string `json:"public_ips"`
	}
	Admin   struct{ Listen string }
	Cluster struct{ URL string }
}

// print checks the configuration of the first pod and returns it.
func (o *objects) print(t *testing.T, volsfu string, args []string) configuration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "volsfu.yaml")
	if err := os.WriteFile(file, []byte(o.configMap.Data["volsfu.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"$(POD_NAME)": release + "-0", "$(HOST_ADDRESS)": "192.0.2.1"}
	var given []string
	for _, a := range args[1:] {
		for variable, value := range variables {
			a = strings.ReplaceAll(a, variable, value)
		}
		if strings.Contains(a, "$(") {
			t.Errorf("the argument %s has a variable that the pod has not", a)
		}
		if strings.HasPrefix(a, "--config=") {
			a = "--config=" + file
		}
		given = append(given, a)
	}
	var output []byte
	for _, command := range []string{"check", "print"} {
		run := exec.Command(volsfu, append([]string{"config", command}, given...)...)
		for _, v := range o.set.Spec.Template.Spec.Containers[0].Env {
			run.Env = append(run.Env, v.Name+"="+v.Value)
		}
		var said bytes.Buffer
		run.Stderr = &said
		var err error
		if output, err = run.Output(); err != nil {
			t.Fatalf("volsfu config %s %q: %v: %s%s", command, given, err, output, said.Bytes())
		}
	}
	var printed configuration
	if err := yaml.Unmarshal(output, &printed); err != nil {
		t.Fatal(err)
	}
	return printed
}

// TestScaling: a different number of servers changes no pod, and seeds are among the pods.
func TestScaling(t *testing.T) {
	few, many := render(t, "replicas=2").set.Spec, render(t, "replicas=8").set.Spec
	a, errA := yaml.Marshal(few.Template)
	b, errB := yaml.Marshal(many.Template)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("2 and 8 servers have different pods:\n%s\n%s", a, b)
	}
	two := render(t, "replicas=2,maxReplicas=2").set.Spec.Template.Spec.Containers[0].Args
	const seeds = "--cluster=embedded://volsfu-0.volsfu-nodes.conferences.svc:6222," +
		"volsfu-1.volsfu-nodes.conferences.svc:6222"
	if !slices.Contains(two, seeds) {
		t.Errorf("the arguments are %q, expected %s", two, seeds)
	}
}

// TestConfigurationRestarts: pods of another configuration are replaced.
func TestConfigurationRestarts(t *testing.T) {
	annotations := func(set ...string) map[string]string { return render(t, set...).set.Spec.Template.Annotations }
	if maps.Equal(annotations(), annotations("config.rooms.rooms=5")) {
		t.Error("the pods of two configurations have the same annotations")
	}
}

// TestRefused: wrong values are refused with the name of the value.
func TestRefused(t *testing.T) {
	for set, want := range map[string]string{
		"replicas=9":                "replicas is 9, expected at most maxReplicas, which is 8",
		"replicas=0":                "replicas",
		"replcias=3":                "replcias",
		"config.cluster.port=1":     "cluster",
		"memoryLimit=3Gi":           "memoryLimit",
		"drainSeconds=1h":           "drainSeconds",
		"resources.limit.memory=1":  "limit",
		"ingress.enabled=true":      "ingress.host is empty",
		"imagePullPolicy=Sometimes": "imagePullPolicy",
		"nodeSelector.zone=1":       "zone",
	} {
		_, err := template(t, set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, expected %q in it", set, err, want)
		}
	}
}

// TestNotes: the text after an installation names the commands of a cluster.
func TestNotes(t *testing.T) {
	const command = "create secret generic volsfu-0-cluster --from-file=cluster/volsfu-0"
	if notes := render(t).notes; !strings.Contains(notes, command) {
		t.Errorf("no %q in:\n%s", command, notes)
	}
	if notes := render(t, alone...).notes; strings.Contains(notes, "certificate") {
		t.Errorf("a single server has the notes:\n%s", notes)
	}
}

// TestDocumented: the chart accepts the values of the commands in the documentation.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`--set ([^\s`+"`"+`]+)`).FindAllStringSubmatch(string(page), -1)
	if len(found) < 4 {
		t.Fatalf("%d settings are documented, expected at least 4", len(found))
	}
	for _, match := range found {
		if _, err := template(t, match[1]); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
	}
}
