package kube

import (
	"context"
	"io"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// listedAtFirst changes lw so that the reflector's first list is read by a list request, and
// returns it. client-go would read it by a watch, object by object, which costs the API server
// twice as much. Each object is posted when it has been read, so that the list is never held
// as a whole, and the machine handles it meanwhile; it decides nothing before all is there.
// The reflector sees only a bookmark that ends the list, and the watch that follows. This is
// tried once: if the list fails, the reflector goes on as it always does, and Replace corrects
// what was posted.
func (s *store) listedAtFirst(client rest.Interface, kind protobufObject, lw *cache.ListWatch) *cache.ListWatch {
	open, list := lw.WatchFuncWithContext, lw.ListWithContextFunc
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if o.ResourceVersion == "0" { // any state, also one that is older than what was posted
			o.ResourceVersion = ""
		}
		return list(ctx, o)
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if o.SendInitialEvents == nil || s.tried {
			return open(ctx, o)
		}
		s.tried = true
		version, err := s.stream(ctx, client, kind)
		if err != nil {
			s.logger.Info("Failed to read the first list", "resource", s.resource(), "err", err)
			return open(ctx, o)
		}
		after := o
		after.SendInitialEvents, after.ResourceVersionMatch, after.ResourceVersion = nil, "", version
		w, err := open(ctx, after)
		if err != nil {
			return nil, err
		}
		s.streamed = version
		end := emptyLike(kind)
		end.SetResourceVersion(version)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		return newRelay(w, unchanged, watch.Event{Type: watch.Bookmark, Object: end}), nil
	}
	return lw
}

// protobufObject is an object of the API that can be decoded from protobuf.
type protobufObject interface {
	runtime.Object
	metav1.Object
	Unmarshal([]byte) error
}

// emptyLike returns a new, empty object of the type of kind.
func emptyLike(kind protobufObject) protobufObject {
	return reflect.New(reflect.TypeOf(kind).Elem()).Interface().(protobufObject)
}

// stream lists the store's objects, in protobuf, and posts each as soon as it is read. It
// returns the list's resource version. It gives up when the response stalls for s.stall; what
// was posted by then stays posted.
func (s *store) stream(ctx context.Context, client rest.Interface, kind protobufObject) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalls := time.AfterFunc(s.stall, cancel)
	defer stalls.Stop()
	o := metav1.ListOptions{FieldSelector: s.selector}
	body, err := client.Get().Resource(s.name).VersionedParams(&o, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	version, err := readList(body, func(b []byte) error {
		stalls.Stop() // the machine may take its time
		defer stalls.Reset(s.stall)
		o := emptyLike(kind)
		if err := o.Unmarshal(b); err != nil {
			return err
		}
		return s.Update(o)
	})
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	return version, err
}
