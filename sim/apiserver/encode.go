package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
)

func equal(a, b Object) bool { return apiequality.Semantic.DeepEqual(a, b) }

// format is how a client wants to be answered.
type format struct{ runtime.SerializerInfo }

var formats = func() map[string]format {
	m := map[string]format{}
	for _, info := range codecs.SupportedMediaTypes() {
		m[info.MediaType] = format{info}
	}
	return m
}()

// formatOf is the format that the client prefers. A client that asks for
// metadata gets whole objects, as JSON, and reads the metadata from them.
func formatOf(r *http.Request) format {
	if strings.Contains(r.Header.Get("Accept"), ";as=") {
		return formats[runtime.ContentTypeJSON]
	}
	if strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		return formats[runtime.ContentTypeProtobuf]
	}
	return formats[runtime.ContentTypeJSON]
}

// encode renders an object that says its kind and version.
func (f format) encode(o runtime.Object) []byte {
	var b bytes.Buffer
	if err := f.Serializer.Encode(o, &b); err != nil {
		panic(err) // the server's own objects
	}
	return b.Bytes()
}

// answer sends an object.
func (f format) answer(w http.ResponseWriter, code int, o runtime.Object) {
	w.Header().Set("Content-Type", f.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(f.encode(o))
}

// refuse sends an error.
func (f format) refuse(w http.ResponseWriter, err error) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	f.answer(w, int(status.Status().Code), StatusObject(status.Status()))
}

// StatusObject is a Status as it is sent.
func StatusObject(s metav1.Status) *metav1.Status {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &s
}

// Refuse answers the request with an error, as the server would.
func Refuse(w http.ResponseWriter, r *http.Request, err error) { formatOf(r).refuse(w, err) }

// events writes the events of a watch.
type events struct {
	format
	out     streaming.Encoder
	flusher http.Flusher
}

func (f format) events(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", f.MediaType+";stream=watch")
	if f.MediaType == runtime.ContentTypeJSON {
		w.Header().Set("Content-Type", f.MediaType)
	}
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	e := &events{f, streaming.NewEncoder(f.StreamSerializer.Framer.NewFrameWriter(w), f.StreamSerializer.Serializer), flusher}
	e.flush()
	return e
}

func (e *events) flush() {
	if e.flusher != nil {
		e.flusher.Flush()
	}
}

func (e *events) send(t watch.EventType, o runtime.Object) error {
	err := e.out.Encode(&metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: json.RawMessage(e.encode(o))}})
	e.flush()
	return err
}

// decodeBody reads the body of a request.
func decodeBody(r *http.Request, into schema.GroupVersionKind) (Object, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o, _, err := codecs.UniversalDeserializer().Decode(body, &into, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, ok := o.(Object)
	if !ok {
		return nil, apierrors.NewBadRequest("no object")
	}
	return object, nil
}
