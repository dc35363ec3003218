"""What a person sees: lines, progress, the approval question, errors. What happens is the runtime's business."""
