package generate

import (
	"maps"

	v1 "k8s.io/api/core/v1"
)

// applyDefaults does to a pod what the API server does on creation, as far as
// a scheduler can see it: requests out of limits, protocols, host ports on the
// host's network, the scheduler's name and the priority.
func applyDefaults(p *v1.Pod) {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	if p.Spec.Priority == nil {
		p.Spec.Priority = new(int32)
	}
	if p.Spec.PreemptionPolicy == nil {
		policy := v1.PreemptLowerPriority
		p.Spec.PreemptionPolicy = &policy
	}
	for _, containers := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i])
			for j := range containers[i].Ports {
				port := &containers[i].Ports[j]
				if port.Protocol == "" {
					port.Protocol = v1.ProtocolTCP
				}
				if p.Spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
}

// requestLimits makes each limit without a request a request.
func requestLimits(c *v1.Container) {
	if len(c.Resources.Limits) == 0 {
		return
	}
	requests := maps.Clone(c.Resources.Limits)
	maps.Copy(requests, c.Resources.Requests)
	c.Resources.Requests = requests
}
