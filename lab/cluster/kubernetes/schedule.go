package kubernetes

import (
	"maps"
	"slices"
)

// binding assigns a pod to a node.
type binding struct {
	pod  *Pod
	node string
}

// schedule returns a node for each pod that has none, if a node is fit. Nodes with a taint are not fit, because the
// pods tolerate none. Resources are not counted.
func schedule(pods []Pod, nodes []Node) (assigned []binding) {
	at := make(map[string][]*Pod)
	for i := range pods {
		if name := pods[i].Spec.NodeName; name != "" {
			at[name] = append(at[name], &pods[i])
		}
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != "" || pod.Metadata.DeletionTimestamp != nil {
			continue
		}
		for _, node := range nodes {
			if fits(pod, &node, nodes, at) {
				at[node.Metadata.Name] = append(at[node.Metadata.Name], pod)
				assigned = append(assigned, binding{pod, node.Metadata.Name})
				break
			}
		}
	}
	return assigned
}

// fits reports whether a pod may run on a node beside the pods of all nodes.
func fits(pod *Pod, node *Node, nodes []Node, at map[string][]*Pod) bool {
	if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || !contains(node.Metadata.Labels, pod.Spec.NodeSelector) {
		return false
	}
	for _, other := range at[node.Metadata.Name] {
		if slices.ContainsFunc(hostPorts(pod), func(p ContainerPort) bool {
			return slices.Contains(hostPorts(other), p)
		}) {
			return false
		}
	}
	for _, term := range pod.Spec.Affinity.Pod.Required {
		domain := node.Metadata.Labels[term.Topology]
		for _, neighbour := range nodes {
			if neighbour.Metadata.Labels[term.Topology] != domain {
				continue
			}
			for _, other := range at[neighbour.Metadata.Name] {
				if other.Metadata.Namespace == pod.Metadata.Namespace &&
					contains(other.Metadata.Labels, term.Selector.Labels) {
					return false
				}
			}
		}
	}
	return true
}

// contains reports whether labels have all selected values.
func contains(labels, selected map[string]string) bool {
	for key, value := range maps.All(selected) {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// hostPorts returns the ports of the host that a pod occupies.
func hostPorts(pod *Pod) (list []ContainerPort) {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Host != 0 {
				list = append(list, p)
			}
		}
	}
	return list
}
