package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Bounds of what is read of a cluster.
const (
	pageSize = 10_000  // objects that are asked for at a time
	mostLive = 4 << 30 // bytes of all answers
)

// answerTimeout is how long an API server may take for one answer.
const answerTimeout = time.Minute

// connect returns how to reach the cluster. All answers that the command reads of it share
// one bound.
func (s *source) connect() (*rest.Config, error) {
	if s.reached != nil {
		return s.reached, nil
	}
	config, err := s.api.config()
	switch {
	case errors.Is(err, errNoKubeconfig):
		return nil, fmt.Errorf("%w (or -f FILE to read files)", err)
	case err != nil:
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, answerTimeout)
	config.Wrap(untrusted.Answers(mostLive))
	config.ContentType = "application/vnd.kubernetes.protobuf"
	s.reached = config
	return config, nil
}

// live adds what a running cluster has of everything that a simulation looks at.
func (s *source) live(ctx context.Context, set *manifest.Set) error {
	config, err := s.connect()
	if err != nil {
		return err
	}
	few := &fewRights{config: config}
	for i := range decode.Kinds {
		k := &decode.Kinds[i]
		if err := few.addAll(ctx, set, k); err != nil {
			err = fmt.Errorf("listing %s: %w", k.Key(), err)
			if file := s.api.file(); file != "" {
				err = fmt.Errorf("--kubeconfig %s: %w", file, err)
			}
			return err
		}
	}
	set.Knows.Classes = !slices.Contains(few.refused, "priorityclasses")
	if err := few.end(set); err != nil {
		return err
	}
	return addAdmissionObjects(ctx, set, config)
}

// addAdmissionObjects lists the kinds of manifest.OfNewPods into set. For a kind that is forbidden
// or not served it adds a notice instead.
func addAdmissionObjects(ctx context.Context, set *manifest.Set, config *rest.Config) error {
	for i := range manifest.OfNewPods {
		k := &manifest.OfNewPods[i]
		switch err := addAll(ctx, set, config, k, ""); {
		case err == nil:
			set.Knows.Templates = set.Knows.Templates || k.Name == "ResourceClaimTemplate"
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
			set.Notices = append(set.Notices, fmt.Sprintf("%s cannot be read, so they do not count for new pods: %s", k.Resource, err))
		default:
			return fmt.Errorf("listing %s: %w", k.Key(), err)
		}
	}
	return nil
}

// addAll adds all objects of a kind in the namespace, empty for all, except for pods that have ended: they take no
// room and want none.
func addAll(ctx context.Context, set *manifest.Set, config *rest.Config, k *decode.Kind, namespace string) error {
	var options metav1.ListOptions
	if k.Name == "Pod" {
		options.FieldSelector = decode.Unfinished
	}
	client, err := clientFor(config, k)
	if err != nil {
		return err
	}
	err = pages(options, func(options metav1.ListOptions) (runtime.Object, error) {
		list, err := k.Scheme().New(k.WithKind(k.Name + "List"))
		if err != nil {
			return nil, err
		}
		return list, client.Get().Namespace(namespace).Resource(k.Resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
	}, func(o runtime.Object) error { return set.Add(o.(metav1.Object), k.Key(), config.Host) })
	if apierrors.IsNotFound(err) && k.Version != "v1" {
		return nil // a beta that is not served: there are none
	}
	return err
}

// pages asks for a list page by page, and calls use with each object.
func pages(options metav1.ListOptions, list func(metav1.ListOptions) (runtime.Object, error), use func(runtime.Object) error) error {
	options.Limit = pageSize
	for first := true; first || options.Continue != ""; first = false {
		page, err := list(options)
		if err != nil {
			return err
		}
		if err := meta.EachListItem(page, use); err != nil {
			return err
		}
		if err := turn(&options, page); err != nil {
			return err
		}
	}
	return nil
}

// turn sets the options for the next page of a list. Each page but the last has objects;
// an object that comes again is an error when it is added.
func turn(options *metav1.ListOptions, list runtime.Object) error {
	page, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	next := page.GetContinue()
	if next != "" && (next == options.Continue || meta.LenList(list) == 0) {
		return errors.New("the API server's list has no end: it goes on where it was, or without an object")
	}
	options.Continue = next
	return nil
}

func clientFor(config *rest.Config, k *decode.Kind) (rest.Interface, error) {
	of := rest.CopyConfig(config)
	of.GroupVersion = &k.GroupVersion
	of.NegotiatedSerializer = k.Codecs().WithoutConversion()
	of.APIPath = "/apis"
	if k.Group == "" {
		of.APIPath = "/api"
	}
	return rest.RESTClientFor(of)
}
