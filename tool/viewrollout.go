package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/untrusted"
	"github.com/berth-scheduler/berth/edge/why"
)

// makerReader returns a pod and a set with its ReplicaSets and its Deployment, nil if it has none.
type makerReader func(ctx context.Context, namespace, name string) (*manifest.Set, *v1.Pod, error)

// withRollouts returns data in which the answers about pods name the rollout that blocks them: a scheduler reads
// no Deployments. Where they cannot be read, an answer stays as it is.
func withRollouts(data page.Data, read makerReader) page.Data {
	return func(ctx context.Context, what string, query map[string][]string, header http.Header) (*http.Response, error) {
		if what != "why" {
			return data(ctx, what, query, header)
		}
		reply, err := data(ctx, what, query, http.Header{}) // not compressed
		if err != nil || reply.StatusCode != http.StatusOK {
			return reply, err
		}
		defer reply.Body.Close()
		body, err := untrusted.All(reply.Body, mostAnswer)
		if err != nil {
			return nil, err
		}
		body = addRollout(ctx, body, read)
		reply.Body = io.NopCloser(bytes.NewReader(body))
		reply.ContentLength = int64(len(body))
		reply.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return reply, nil
	}
}

// addRollout returns the answer about a pod with the rollout that blocks it.
func addRollout(ctx context.Context, body []byte, read makerReader) []byte {
	var said struct {
		Pod     string
		Verdict why.PodState
		Rollout *why.Rollout
		Groups  []why.NodeGroup
	}
	if json.Unmarshal(body, &said) != nil || said.Rollout != nil || len(said.Groups) == 0 || said.Verdict != why.Waiting && said.Verdict != why.Misconfigured {
		return body
	}
	ctx, cancel := context.WithTimeout(ctx, mostUnmadeTime)
	defer cancel()
	namespace, name, _ := strings.Cut(said.Pod, "/")
	set, pod, err := read(ctx, namespace, name)
	if err != nil || set == nil {
		return body
	}
	said.Rollout = why.RolloutOf(set, pod, said.Groups, func(old *appsv1.ReplicaSet) int {
		pods := 0
		for _, p := range set.Pods { // of files
			if by := metav1.GetControllerOfNoCopy(p); p.Spec.NodeName != "" && p.Namespace == namespace && by != nil && by.Kind == "ReplicaSet" && by.Name == old.Name {
				pods++
			}
		}
		return max(pods, int(old.Status.ReadyReplicas))
	})
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if said.Rollout == nil || decoder.Decode(&all) != nil {
		return body
	}
	all["rollout"] = said.Rollout
	if with, err := json.Marshal(all); err == nil {
		return with
	}
	return body
}

// mostReplicaSets bounds the ReplicaSets that are read about a pod.
const mostReplicaSets = 100

// readMakers is a makerReader: it reads the cluster, with the rights of the user.
func (s *source) readMakers(ctx context.Context, namespace, name string) (*manifest.Set, *v1.Pod, error) {
	own := *s // questions come at the same time, and each has its own bound of what it reads
	own.reached = nil
	config, err := own.connect()
	if err != nil {
		return nil, nil, err
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	apps, err := appsclient.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	pod, err := core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "" {
		return nil, nil, err
	}
	of := labels.Set{}
	for key, value := range pod.Labels { // any order: a map
		if key != appsv1.DefaultDeploymentUniqueLabelKey {
			of[key] = value
		}
	}
	list, err := apps.ReplicaSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: of.String(), Limit: mostReplicaSets})
	if err != nil {
		return nil, nil, err
	}
	set := manifest.NewSet()
	for i := range list.Items {
		if err := set.Add(&list.Items[i], "apps/v1/ReplicaSet", config.Host); err != nil {
			return nil, nil, err
		}
	}
	deployment := deploymentOf(set, pod)
	if deployment == "" {
		return nil, nil, nil
	}
	d, err := apps.Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	return set, pod, set.Add(d, "apps/v1/Deployment", config.Host)
}

// makers is a makerReader for files.
func (f fromFiles) makers(_ context.Context, namespace, name string) (*manifest.Set, *v1.Pod, error) {
	if pod := f.pods[namespace+"/"+name]; pod != nil {
		return f.set, pod, nil
	}
	return nil, nil, nil
}
