package kubernetes

import "time"

// The objects of the API that the scheduler, the kubelets and the DNS read, with the fields that they use.

// Metadata is the part that all objects have.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	// DeletionGrace is the time in seconds between SIGTERM and SIGKILL.
	DeletionGrace int64 `json:"deletionGracePeriodSeconds,omitempty"`
	Generation    int64 `json:"generation,omitempty"`
}

// List is a list of objects.
type List[Object any] struct {
	Items []Object `json:"items"`
}

// Pod has its specification, and the conditions of its status.
type Pod struct {
	Metadata Metadata  `json:"metadata"`
	Spec     PodSpec   `json:"spec"`
	Status   PodStatus `json:"status"`
}

// Ready reports whether the pod is ready and not about to end.
func (p *Pod) Ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && p.Metadata.DeletionTimestamp == nil
		}
	}
	return false
}

// PodStatus is the status of a pod.
type PodStatus struct {
	Address    string      `json:"podIP"`
	Conditions []Condition `json:"conditions"`
}

// Condition is a condition of a pod or a node.
type Condition struct {
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Changed is the time of the last change of Status.
	Changed time.Time `json:"lastTransitionTime"`
	// Reported is the time at which the node last reported the condition. Pods have none.
	Reported *time.Time `json:"lastHeartbeatTime,omitempty"`
}

// PodSpec is the specification of a pod.
type PodSpec struct {
	NodeName       string            `json:"nodeName"`
	NodeSelector   map[string]string `json:"nodeSelector"`
	HostNetwork    bool              `json:"hostNetwork"`
	DNSPolicy      string            `json:"dnsPolicy"`
	Affinity       Affinity          `json:"affinity"`
	Containers     []Container       `json:"containers"`
	InitContainers []Container       `json:"initContainers"`
	Volumes        []Volume          `json:"volumes"`
	Security       PodSecurity       `json:"securityContext"`
}

// PodSecurity has the user and the groups of a pod.
type PodSecurity struct {
	User   int `json:"runAsUser"`
	Group  int `json:"runAsGroup"`
	Volume int `json:"fsGroup"`
}

// Affinity has the required rules of a pod.
type Affinity struct {
	Pod struct {
		Required []AffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	} `json:"podAntiAffinity"`
}

// AffinityTerm selects pods that must not be in the same domain.
type AffinityTerm struct {
	Selector struct {
		Labels map[string]string `json:"matchLabels"`
	} `json:"labelSelector"`
	Topology string `json:"topologyKey"`
}

// Container is the container of a pod.
type Container struct {
	Name       string          `json:"name"`
	Image      string          `json:"image"`
	Command    []string        `json:"command"`
	Arguments  []string        `json:"args"`
	Variables  []Variable      `json:"env"`
	Ports      []ContainerPort `json:"ports"`
	Mounts     []Mount         `json:"volumeMounts"`
	Readiness  *Probe          `json:"readinessProbe"`
	Liveness   *Probe          `json:"livenessProbe"`
	Startup    *Probe          `json:"startupProbe"`
	Lifecycle  any             `json:"lifecycle"`
	Privileged struct {
		Privileged bool `json:"privileged"`
	} `json:"securityContext"`
}

// Variable is an environment variable, with a value or the path of a field of the pod.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  *struct {
		Field *struct {
			Path string `json:"fieldPath"`
		} `json:"fieldRef"`
	} `json:"valueFrom"`
}

// ContainerPort is a port, which is occupied on the host if Host is not 0.
type ContainerPort struct {
	Protocol string `json:"protocol"`
	Host     int    `json:"hostPort"`
}

// Mount is the place of a volume in a container.
type Mount struct {
	Name    string `json:"name"`
	Path    string `json:"mountPath"`
	SubPath string `json:"subPath"`
}

// Volume is a set of files.
type Volume struct {
	Name      string        `json:"name"`
	ConfigMap *VolumeSource `json:"configMap"`
	Secret    *VolumeSource `json:"secret"`
	Projected *struct {
		Sources []struct {
			ConfigMap *VolumeSource `json:"configMap"`
			Secret    *VolumeSource `json:"secret"`
		} `json:"sources"`
		Mode uint32 `json:"defaultMode"`
	} `json:"projected"`
}

// VolumeSource is the object with the content of files. In a volume of its own, a Secret has its name in SecretName.
type VolumeSource struct {
	Name       string      `json:"name"`
	SecretName string      `json:"secretName"`
	Optional   bool        `json:"optional"`
	Mode       uint32      `json:"defaultMode"`
	Items      []KeyToPath `json:"items"`
}

// KeyToPath is the path of an entry in a volume.
type KeyToPath struct {
	Key  string `json:"key"`
	Path string `json:"path"`
}

// Probe is a request that is repeated for a container.
type Probe struct {
	HTTP *struct {
		Host string `json:"host"`
		Path string `json:"path"`
		Port int    `json:"port"`
	} `json:"httpGet"`
	// Delay, Timeout and Period are seconds.
	Delay     int `json:"initialDelaySeconds"`
	Timeout   int `json:"timeoutSeconds"`
	Period    int `json:"periodSeconds"`
	Successes int `json:"successThreshold"`
	Failures  int `json:"failureThreshold"`
}

// Node is a host.
type Node struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Unschedulable bool `json:"unschedulable"`
		Taints        []struct {
			Key    string `json:"key"`
			Effect string `json:"effect"`
		} `json:"taints"`
	} `json:"spec"`
}

// StatefulSet has the numbers of its pods.
type StatefulSet struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Observed  int64  `json:"observedGeneration"`
		Ready     int    `json:"readyReplicas"`
		Available int    `json:"availableReplicas"`
		Current   string `json:"currentRevision"`
		Update    string `json:"updateRevision"`
	} `json:"status"`
}

// Complete reports whether all pods have the present template and are available.
func (s *StatefulSet) Complete() bool {
	return s.Status.Observed == s.Metadata.Generation && s.Status.Current == s.Status.Update &&
		s.Status.Available == s.Spec.Replicas
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Metadata Metadata `json:"metadata"`
	Status   struct {
		Allowed int `json:"disruptionsAllowed"`
	} `json:"status"`
}

// EndpointSlice has addresses of a service.
type EndpointSlice struct {
	Metadata  Metadata `json:"metadata"`
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Hostname   string   `json:"hostname"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
}
