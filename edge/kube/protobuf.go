package kube

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// protobufMagic begins each message of the API in protobuf.
	protobufMagic = "k8s\x00"
	// maxObject is the largest object that is read, in bytes. etcd accepts 1.5 MiB by
	// default.
	maxObject = 64 << 20
)

// Field numbers of protobuf messages: of the object in a runtime.Unknown, and of the
// metadata and the items in a list of any kind.
const (
	unknownRaw                = 2
	listMetadata, listObjects = 1, 2
)

var (
	errNoProtobuf = errors.New("the list is not in protobuf")
	errNoVersion  = errors.New("the list has no resourceVersion")
	errNotWhole   = errors.New("the list has a continue token")
)

// readList reads a list in protobuf and calls object with the bytes of each item, which are
// valid during the call. It returns the list's resource version. It stops at the first error of
// object, and fails if the list has a continue token or no version.
func readList(body io.Reader, object func([]byte) error) (version string, err error) {
	r := bufio.NewReader(body)
	magic := make([]byte, len(protobufMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != protobufMagic {
		return "", errors.Join(errNoProtobuf, err)
	}
	for {
		field, length, err := readField(r)
		switch {
		case err != nil:
			return "", noEOF(err)
		case field == unknownRaw:
			return readObjects(r, length, object)
		}
		if _, err := io.CopyN(io.Discard, r, length); err != nil {
			return "", noEOF(err)
		}
	}
}

// readObjects reads the list message itself, size bytes long, for readList. It calls object
// and returns the list's resource version.
func readObjects(body io.Reader, size int64, object func([]byte) error) (version string, err error) {
	counted := &io.LimitedReader{R: body, N: size}
	r := bufio.NewReaderSize(counted, 1<<16)
	var buffer []byte
	for {
		field, length, err := readField(r)
		if err == io.EOF && counted.N == 0 {
			if version == "" {
				return "", errNoVersion
			}
			return version, nil
		}
		if err != nil {
			return "", noEOF(err)
		}
		if length > maxObject {
			return "", fmt.Errorf("field %d has an object of %d bytes, the limit is %d", field, length, maxObject)
		}
		buffer = slices.Grow(buffer[:0], int(length))[:length]
		if _, err := io.ReadFull(r, buffer); err != nil {
			return "", noEOF(err)
		}
		switch field {
		case listMetadata:
			var head metav1.ListMeta
			err = head.Unmarshal(buffer)
			if version = head.ResourceVersion; err == nil && head.Continue != "" {
				err = errNotWhole
			}
		case listObjects:
			err = object(buffer)
		}
		if err != nil {
			return "", err
		}
	}
}

// readField skips to the next length-delimited field and returns its number and its length
// in bytes, which are still to be read. It returns io.EOF at the end of the message.
func readField(r *bufio.Reader) (number uint64, length int64, err error) {
	for {
		key, err := binary.ReadUvarint(r)
		if err != nil {
			return 0, 0, err
		}
		skip := 0
		switch key & 7 {
		case 0:
			_, err = binary.ReadUvarint(r)
		case 1:
			skip = 8
		case 2:
			n, err := binary.ReadUvarint(r)
			if n > math.MaxInt64 {
				return 0, 0, fmt.Errorf("field %d has %d bytes, which is too long", key>>3, n)
			}
			return key >> 3, int64(n), noEOF(err)
		case 5:
			skip = 4
		default:
			return 0, 0, fmt.Errorf("field %d has wire type %d, which is not supported", key>>3, key&7)
		}
		if _, cut := r.Discard(skip); cut != nil || err != nil {
			return 0, 0, noEOF(errors.Join(err, cut))
		}
	}
}

// noEOF returns io.ErrUnexpectedEOF for io.EOF, and other errors unchanged: the message
// was cut off.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
