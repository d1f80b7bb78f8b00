// Command receive receives events: it checks each one's signature, and says what it is about.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

func main() {
	http.Handle("POST /registrar", verify.Handler(verify.NewMemory(10_000), receive, os.Getenv("SIGNING_SECRET")))
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func receive(e verify.Event) error {
	switch e.Type {
	case "enrollment.created":
		var data client.EnrollmentCreatedEvent_Data
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		fmt.Println(e.Type, data.Student.Email, data.Enrollment.CourseName)
	case "result.final":
		var data client.FinalResult
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		fmt.Println(e.Type, data.Student.Email, data.ScoreLabel)
	default: // there are others, and more may come
		fmt.Println(e.Type)
	}
	return nil
}
