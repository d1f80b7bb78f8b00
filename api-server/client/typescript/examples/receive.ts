// Receives events: checks each one's signature, and says what it is about.
import { createServer } from "node:http";
import { SignatureError, verify } from "../src/index.js";

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const event = await verify(Buffer.concat(chunks), request.headers["x-service-signature"] as string, process.env.SIGNING_SECRET!);
    switch (event.type) {
      case "enrollment.created":
        console.log(event.type, event.data.student.email, event.data.enrollment.course_name);
        break;
      case "result.final":
        console.log(event.type, event.data.student.email, event.data.score_label);
        break;
      default: // there are others, and more may come
        console.log(event.type);
    }
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof SignatureError ? 401 : 500).end();
  }
});
server.listen(Number(process.env.PORT), "127.0.0.1");
