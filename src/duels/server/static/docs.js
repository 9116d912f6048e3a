/** Swagger UI for the API of this server. */

const csrf = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: false, // it puts links inside buttons, which is not accessible
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
  requestInterceptor: (request) => {
    request.headers["X-CSRF-Token"] = csrf;
    return request;
  },
});
