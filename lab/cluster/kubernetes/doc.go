// Package kubernetes runs a control plane of Kubernetes and hosts whose pods are processes. The control plane has the
// real programs etcd, kube-apiserver and kube-controller-manager, on a host of its own. This package has the rest: a scheduler,
// a kubelet for each host and the DNS of the cluster's services.
//
// A host is a network namespace. The container of a pod runs there as a process with the pod's user and groups, whose
// root folder has the program and the volumes. A pod has one container, in the network of its host. The kubelet refuses
// a pod with other features, with an error that names the feature.
package kubernetes
